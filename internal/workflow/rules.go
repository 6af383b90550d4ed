package workflow

func errorRules(codes ...string) []rule { return rulesOf(SeverityError, codes) }

func warningRules(codes ...string) []rule { return rulesOf(SeverityWarning, codes) }

func rulesOf(severity string, codes []string) []rule {
	rules := make([]rule, 0, len(codes))
	for _, code := range codes {
		rules = append(rules, rule{code: code, severity: severity})
	}
	return rules
}
