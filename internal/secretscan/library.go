package secretscan

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"github.com/zricethezav/gitleaks/v8/config"
)

// A libraryRule is a rule of the library that is about text. Its exceptions are part of it: they are about what the text
// is, never about what somebody says of it.
type libraryRule struct {
	id       string
	pattern  *regexp.Regexp
	keywords []string // lower case; one of them is in every text that the pattern finds
	group    int      // that is the secret; 0: the first that is not empty
	entropy  float64  // that the secret must exceed; 0: any
	allow    []*config.Allowlist
}

var errNoRules = errors.New("the library has no rules")

// readLibrary reads the default rules of the library, ordered by id. Rules about files of certain names are left out: a
// text has no name.
func readLibrary() ([]libraryRule, error) {
	reader := viper.New()
	reader.SetConfigType("toml")
	if err := reader.ReadConfig(strings.NewReader(config.DefaultConfig)); err != nil {
		return nil, fmt.Errorf("parse rules: %w", err)
	}
	var raw config.ViperConfig
	if err := reader.Unmarshal(&raw); err != nil {
		return nil, fmt.Errorf("decode rules: %w", err)
	}
	defaults, err := raw.Translate()
	if err != nil {
		return nil, fmt.Errorf("compile rules: %w", err)
	}
	var rules []libraryRule
	for _, rule := range defaults.Rules {
		if rule.Regex == nil || rule.Path != nil {
			continue
		}
		rules = append(rules, libraryRule{
			id: rule.RuleID, pattern: rule.Regex, keywords: rule.Keywords, group: rule.SecretGroup, entropy: rule.Entropy,
			allow: contentLists(slices.Concat(defaults.Allowlists, rule.Allowlists)),
		})
	}
	if len(rules) == 0 {
		return nil, errNoRules
	}
	slices.SortFunc(rules, func(a, b libraryRule) int { return strings.Compare(a.id, b.id) })
	return rules, nil
}

// contentLists are the exceptions for what was found. Those for its line would let a secret pass for what is written
// beside it, and those for commits and paths have nothing to look at.
func contentLists(lists []*config.Allowlist) []*config.Allowlist {
	return slices.DeleteFunc(lists, func(list *config.Allowlist) bool {
		return list.RegexTarget == "line" || list.MatchCondition == config.AllowlistMatchAnd
	})
}

// find returns where the rule is met first, or -1. It also gets the text in lower case.
func (r libraryRule) find(text, lower string) int {
	if !r.mayMatch(lower) {
		return -1
	}
	for from := 0; from < len(text); {
		groups := r.pattern.FindStringSubmatchIndex(text[from:])
		if groups == nil {
			return -1
		}
		if r.accepts(text[from:], groups) {
			return from + groups[0]
		}
		from += max(groups[1], 1)
	}
	return -1
}

func (r libraryRule) accepts(text string, groups []int) bool {
	found := strings.Trim(text[groups[0]:groups[1]], "\n")
	secret := found
	if group := r.secretGroup(groups); group > 0 {
		secret = text[groups[2*group]:groups[2*group+1]]
	}
	if r.entropy > 0 && entropyOf(secret) <= r.entropy {
		return false
	}
	return !slices.ContainsFunc(r.allow, func(list *config.Allowlist) bool { return excepts(list, found, secret) })
}

// secretGroup is the group of a match that is the secret; 0: all of it.
func (r libraryRule) secretGroup(groups []int) int {
	if r.group > 0 && 2*r.group+1 < len(groups) && groups[2*r.group] >= 0 {
		return r.group
	}
	for group := 1; 2*group < len(groups); group++ {
		if groups[2*group] < groups[2*group+1] {
			return group
		}
	}
	return 0
}

func excepts(list *config.Allowlist, found, secret string) bool {
	target := secret
	if list.RegexTarget == "match" {
		target = found
	}
	hasStopWord, _ := list.ContainsStopWord(secret)
	return hasStopWord || list.RegexAllowed(target)
}

// entropyOf is the entropy of a character of the text, in bits.
func entropyOf(text string) float64 {
	counts := map[rune]float64{}
	total := 0.0
	for _, r := range text {
		counts[r]++
		total++
	}
	bits := 0.0
	for _, count := range counts {
		bits -= count / total * math.Log2(count/total)
	}
	return bits
}

func (r libraryRule) mayMatch(lower string) bool {
	return len(r.keywords) == 0 || slices.ContainsFunc(r.keywords, func(word string) bool { return strings.Contains(lower, word) })
}
