package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "github.com/apitomy/axiom-operator/api/v1alpha1"
	"github.com/apitomy/axiom-operator/internal/form"
	"github.com/apitomy/axiom-operator/internal/humantask"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// Members of a task's status that people write, and the one that ends a task
// without them.
const (
	memberAnswer  = "answer"
	memberFailure = "failure"
	memberClosed  = "closed"
)

const maxFieldErrors = 20

// taskChange is a write of a task's status. The statuses are read as plain JSON:
// typed, an answer of null would look like none.
type taskChange struct {
	refusals
	// task as it is stored, with spec the same question as JSON.
	task *api.HumanTask
	spec map[string]any
	// before and after are the status, nil without one.
	before, after map[string]any
	user          authenticationv1.UserInfo
	byOperator    bool
	now           time.Time
}

// isFirstAnswer tells whether the write would answer, or give up, a task for
// the first time.
func (c taskChange) isFirstAnswer() bool {
	return !isAnswered(c.before) && isAnswered(c.after)
}

func isAnswered(status map[string]any) bool {
	return status[memberAnswer] != nil || status[memberFailure] != nil
}

// judgePerson admits at most one answer, by somebody who may give it.
func (c taskChange) judgePerson() error {
	changed := changedMembers(c.before, c.after)
	if i := slices.IndexFunc(changed, c.isForeign); i >= 0 {
		return c.foreign(changed[i])
	}
	if !slices.Contains(changed, memberAnswer) && !slices.Contains(changed, memberFailure) {
		return nil
	}
	if !humantask.IsFor(c.task, c.user.Username, c.user.Groups) {
		return c.forbidden("user %q is not among the assignees", c.user.Username)
	}
	if reason := c.notOpen(); reason != "" {
		return c.conflict("%s", reason)
	}
	return c.judgeAnswer()
}

func (c taskChange) foreign(member string) error {
	return c.forbidden("status.%s: only `answer` and `failure` may be written", member)
}

// isForeign tells of a changed member whether it is not for people to change.
// The stamp and what follows from it are fine with a first answer if they are
// the caller's own: the mutating door wrote them.
func (c taskChange) isForeign(member string) bool {
	switch member {
	case memberAnswer, memberFailure:
		return false
	case memberAnsweredBy:
		return !c.isFirstAnswer() || !reflect.DeepEqual(c.after[member], c.freshStamp()[member])
	case memberAnsweredAt:
		return !c.isFirstAnswer()
	case memberPhase, memberConditions, memberGeneration:
		return !c.isFirstAnswer() || !reflect.DeepEqual(c.after[member], c.observed(c.stampedAt())[member])
	}
	return true
}

// stampedAt is the time that the mutating door wrote.
func (c taskChange) stampedAt() time.Time {
	text, _ := c.after[memberAnsweredAt].(string)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return c.now
	}
	return at
}

// notOpen says why a task cannot be answered; empty if it can.
func (c taskChange) notOpen() string {
	status := c.task.Status
	switch {
	case isAnswered(c.before):
		return "already " + c.answered()
	case status.Closed != nil:
		return "the task is closed: " + string(status.Closed.Reason)
	case c.task.DeletionTimestamp != nil:
		return "the task is being deleted"
	}
	if expiry, ok := humantask.Expiry(c.task); ok && !c.now.Before(expiry) {
		return "the task has expired: its time passed at " + expiry.UTC().Format(time.RFC3339)
	}
	return ""
}

// answered tells how, by whom and when.
func (c taskChange) answered() string {
	what, by, at := "answered", "somebody", "an unknown time"
	if c.before[memberFailure] != nil {
		what = "failed"
	}
	if stamp := c.task.Status.AnsweredBy; stamp != nil {
		by = stamp.Username
	}
	if stamp := c.task.Status.AnsweredAt; stamp != nil {
		at = stamp.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s by %s at %s", what, by, at)
}

// judgeAnswer holds an answer against the question.
func (c taskChange) judgeAnswer() error {
	answer, failure := c.after[memberAnswer], c.after[memberFailure]
	path := field.NewPath("status")
	if (answer == nil) == (failure == nil) {
		return c.invalid(field.ErrorList{field.Required(path, "exactly one of `answer` and `failure` must be given, and not null")})
	}
	if failure != nil {
		object, _ := failure.(map[string]any)
		reason, _ := object["reason"].(string)
		return c.invalid(validateNotBlank(reason, path.Child(memberFailure, "reason")))
	}
	if size := jsonvalue.Size(answer); size > form.MaxAnswerBytes {
		return c.invalid(field.ErrorList{excess(path.Child(memberAnswer), size, form.MaxAnswerBytes, "bytes of JSON")})
	}
	_, wrong := form.Accept(form.SpecOf(c.spec), answer)
	if len(wrong) == 0 {
		return nil
	}
	return c.rejected(wrong)
}

// rejected is 422 with paths and rules: an answer may be confidential.
func (c taskChange) rejected(wrong []form.FieldError) error {
	hidden := max(len(wrong)-maxFieldErrors, 0)
	wrong = wrong[:len(wrong)-hidden]
	var causes []metav1.StatusCause
	var lines []string
	for _, e := range wrong {
		lines = append(lines, e.Error())
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: e.Path, Message: e.Rule})
	}
	if hidden > 0 {
		more := fmt.Sprintf("%d more", hidden)
		lines = append(lines, more)
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "(others)", Message: more})
	}
	return c.unprocessable("the answer is not accepted: "+strings.Join(lines, "; "), causes)
}

// judgeOperator keeps the operator from answering, and from ending a task that
// somebody answered or that it ended before.
func (c taskChange) judgeOperator() error {
	changed := changedMembers(c.before, c.after)
	for _, member := range []string{memberAnswer, memberFailure, memberAnsweredBy, memberAnsweredAt} {
		if slices.Contains(changed, member) {
			return c.forbidden("status.%s: not for the operator to write", member)
		}
	}
	if !slices.Contains(changed, memberClosed) {
		return nil
	}
	switch {
	case c.task.Status.Closed != nil:
		return c.conflict("status.closed: already closed: %s", c.task.Status.Closed.Reason)
	case isAnswered(c.before):
		return c.conflict("status.closed: already %s", c.answered())
	}
	return nil
}
