package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/apitomy/axiom-operator/gateway/openapi"
)

// Texts that callers may rely on.
const (
	detailBadToken   = "Missing or invalid X-Axiom-Session-Token"
	detailNoTurn     = "No AI turn is running"
	detailNoWorkflow = "The composition has no workflow yet; create one with upsert_item type workflow"
	detailTurnFull   = "This turn is full; finish it and continue in a new turn"
	detailNoItems    = "Items are only available for Configuration Assistant sessions"
	detailBadBearer  = "Missing or invalid bearer token"
)

// retryAfterSeconds is what callers are asked to wait who come too fast, or at
// a bad time.
const retryAfterSeconds = 1

// maxDetail bounds what a problem repeats of an error of the API server, in bytes.
const maxDetail = 2000

// problem is a refusal on its way to the caller.
type problem struct {
	openapi.Problem
}

// Error implements error.
func (p *problem) Error() string {
	return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail)
}

func refuse(status int, code openapi.ProblemCode, detail string) *problem {
	return &problem{openapi.Problem{Status: status, Title: http.StatusText(status), Code: code, Detail: detail}}
}

func invalid(format string, args ...any) *problem {
	return refuse(http.StatusBadRequest, openapi.ProblemCodeInvalid, fmt.Sprintf(format, args...))
}

func unauthorized() *problem {
	return refuse(http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, detailBadToken)
}

// stranger is the problem of somebody who should be a person.
func stranger() *problem {
	return refuse(http.StatusUnauthorized, openapi.ProblemCodeUnauthorized, detailBadBearer)
}

func forbidden(format string, args ...any) *problem {
	return refuse(http.StatusForbidden, openapi.ProblemCodeForbidden, fmt.Sprintf(format, args...))
}

func notFound(format string, args ...any) *problem {
	return refuse(http.StatusNotFound, openapi.ProblemCodeNotFound, fmt.Sprintf(format, args...))
}

func noTurn() *problem {
	return refuse(http.StatusConflict, openapi.ProblemCodeNoTurn, detailNoTurn)
}

func conflict(format string, args ...any) *problem {
	return refuse(http.StatusConflict, openapi.ProblemCodeConflict, fmt.Sprintf(format, args...))
}

func tooLarge(format string, args ...any) *problem {
	return refuse(http.StatusRequestEntityTooLarge, openapi.ProblemCodeTooLarge, fmt.Sprintf(format, args...))
}

func tooSlow() *problem {
	return refuse(http.StatusRequestTimeout, openapi.ProblemCodeInvalid, "The body did not arrive in time")
}

func unprocessable(detail string) *problem {
	return refuse(http.StatusUnprocessableEntity, openapi.ProblemCodeInvalid, detail)
}

func rateLimited() *problem {
	return refuse(http.StatusTooManyRequests, openapi.ProblemCodeRateLimited, "Too many requests; try again in a moment")
}

func unavailable(detail string) *problem {
	return refuse(http.StatusServiceUnavailable, openapi.ProblemCodeUnavailable, detail)
}

// problemOf tells the caller of an error. Only what the API server says of the
// content is repeated; all other errors are the operator's own business.
func problemOf(err error) *problem {
	var p *problem
	switch {
	case errors.As(err, &p):
		return p
	case isRefusal(err):
		detail := err.Error()
		return unprocessable(strings.ToValidUTF8(detail[:min(len(detail), maxDetail)], ""))
	}
	return unavailable("The Kubernetes API is not available; try again in a moment")
}

// isRefusal tells whether the API server or a webhook looked at the content
// and did not like it. Any other prohibition is a fault of the installation.
func isRefusal(err error) bool {
	if apierrors.IsForbidden(err) {
		return strings.Contains(err.Error(), "admission webhook")
	}
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable {
		header.Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	w.WriteHeader(p.Status)
	// A caller that is gone needs no answer.
	_ = json.NewEncoder(w).Encode(p.Problem)
}
