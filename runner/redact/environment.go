package redact

import (
	"slices"
	"strings"
)

// SecretNames is the environment variable that lists, separated by commas, the
// variables of the pod that hold secret values.
const SecretNames = "AXIOM_SECRET_ENV"

// telling are the parts of a variable's name that give a secret away when the
// pod does not list its secret variables.
var telling = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL"}

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
	upper := strings.ToUpper(name)
	return slices.ContainsFunc(telling, func(part string) bool { return strings.Contains(upper, part) })
}
