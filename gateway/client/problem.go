package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// maxShownBody bounds what the detail of a problem repeats of an answer that
// the gateway did not write, in bytes.
const maxShownBody = 200

// A Problem is a refusal by the gateway, or by something in front of it, whose
// problems have no code.
//
//nolint:errname // what the contract and HTTP call it
type Problem struct {
	openapi.Problem
}

// Error implements error.
func (p *Problem) Error() string {
	return fmt.Sprintf("HTTP %d: %s", p.Status, p.Detail)
}

func asProblem(err error) (*Problem, bool) { return errors.AsType[*Problem](err) }

// problemOf reads the problem out of an answer.
func problemOf(response *http.Response, body []byte) *Problem {
	problem := &Problem{}
	media, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && media == "application/problem+json" && json.Unmarshal(body, problem) == nil {
		problem.Status = response.StatusCode
		return problem
	}
	problem.Problem = openapi.Problem{
		Status: response.StatusCode,
		Title:  http.StatusText(response.StatusCode),
		Detail: foreignDetail(response.StatusCode, body),
	}
	return problem
}

func foreignDetail(status int, body []byte) string {
	text := string(body[:min(len(body), maxShownBody)])
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, string(utf8.RuneError))), " ")
	if text == "" {
		return http.StatusText(status)
	}
	return text
}
