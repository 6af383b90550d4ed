package redact

import (
	"slices"
	"strings"
)

// SecretNames is the environment variable that lists, separated by commas, the
// variables of the pod that hold secret values.
const SecretNames = "AXIOM_SECRET_ENV"

// telling are the words in a variable's name that give a secret away when the
// pod does not list its secret variables, which it cannot where it takes them
// from a Secret as a whole.
var telling = []string{
	"APIKEY", "AUTH", "COOKIE", "CREDENTIAL", "CREDENTIALS", "DSN", "KEY", "KEYS", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PAT", "SECRET",
	"SECRETS", "TOKEN", "TOKENS",
}

// FromEnvironment returns the secret values of an environment in the form
// NAME=value: those of the variables that [SecretNames] lists, and those whose
// name says so.
func FromEnvironment(environment []string) []string {
	var listed []string
	for _, variable := range environment {
		if name, value, _ := strings.Cut(variable, "="); name == SecretNames {
			listed = strings.Split(value, ",")
		}
	}
	var secrets []string
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		if name == SecretNames {
			continue
		}
		if slices.Contains(listed, name) || tells(name) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

func tells(name string) bool {
	for word := range strings.SplitSeq(strings.ToUpper(name), "_") {
		if slices.Contains(telling, word) {
			return true
		}
	}
	return false
}
