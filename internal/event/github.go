package event

import "time"

// sourceGitHub is the source of all events from GitHub.
const sourceGitHub = "github"

// GitHub reads the body of a webhook of GitHub. The kind of event and the id of
// the delivery come from its headers. There is no event if the delivery is not
// of a kind that is told of. The error is a [*FormatError] or a [*SizeError].
func GitHub(kind, delivery string, body []byte, received time.Time) (*Event, error) {
	if err := checkRequired("X-GitHub-Event", kind, maxType); err != nil {
		return nil, err
	}
	if err := checkRequired("X-GitHub-Delivery", delivery, maxSenderID); err != nil {
		return nil, err
	}
	payload, err := jsonObject("body", body)
	if err != nil {
		return nil, err
	}
	eventType := typeOfGitHub(kind, payload)
	if eventType == "" {
		return nil, nil //nolint:nilnil // most deliveries are of no interest
	}
	e := &Event{
		SenderID: delivery, Source: sourceGitHub, Type: eventType, Ref: pageOf(payload),
		Timestamp: timeOf(payload, received), Actor: senderOf(payload), Payload: payload,
	}
	if err := checkText("html_url", e.Ref, maxRef); err != nil {
		return nil, err
	}
	if err := e.Actor.check(); err != nil {
		return nil, err
	}
	return e, e.check()
}

// GitHubTypes are the types of the events that deliveries of GitHub become.
func GitHubTypes() []string {
	return []string{
		"issue.created", "issue.updated", "issue.closed", "issue.reopened", "issue.assigned", "issue.unassigned", "issue.labeled", "issue.unlabeled",
		"issue.comment.created", "issue.comment.updated", "issue.comment.deleted",
		"pr.created", "pr.closed", "pr.merged", "pr.reopened", "pr.review_requested", "pr.labeled", "pr.unlabeled", "pr.synchronize",
		"pr.review.submitted", "pr.comment.created",
		"push", "branch.created", "branch.deleted", "tag.created", "release.published",
	}
}

// typeOfGitHub names what happened, empty if it is not told of.
func typeOfGitHub(kind string, payload map[string]any) string {
	action := textAt(payload, "action")
	switch kind {
	case "issues":
		return typeOfIssue(action)
	case "issue_comment":
		return typeOfComment(action, objectAt(payload, "issue")["pull_request"] != nil)
	case "pull_request":
		return typeOfPullRequest(action, objectAt(payload, "pull_request")["merged"] == true)
	case "pull_request_review":
		return whenever(action == "submitted", "pr.review.submitted")
	case "pull_request_review_comment":
		return whenever(action == "created", "pr.comment.created")
	case "push":
		return "push"
	case "create", "delete":
		return typeOfRef(kind, textAt(payload, "ref_type"))
	case "release":
		return whenever(action == "published", "release.published")
	}
	return ""
}

func whenever(holds bool, eventType string) string {
	if !holds {
		return ""
	}
	return eventType
}

func typeOfIssue(action string) string {
	switch action {
	case "opened":
		return "issue.created"
	case "edited":
		return "issue.updated"
	case "closed", "reopened", "assigned", "unassigned", "labeled", "unlabeled":
		return "issue." + action
	}
	return ""
}

// typeOfComment tells comments of issues from those in the conversation of a
// pull request, which GitHub reports alike.
func typeOfComment(action string, isOnPullRequest bool) string {
	switch {
	case isOnPullRequest:
		return whenever(action == "created", "pr.comment.created")
	case action == "edited":
		return "issue.comment.updated"
	case action == "created", action == "deleted":
		return "issue.comment." + action
	}
	return ""
}

func typeOfPullRequest(action string, isMerged bool) string {
	switch action {
	case "opened":
		return "pr.created"
	case "closed":
		if isMerged {
			return "pr.merged"
		}
		return "pr.closed"
	case "reopened", "review_requested", "labeled", "unlabeled", "synchronize":
		return "pr." + action
	}
	return ""
}

func typeOfRef(kind, refType string) string {
	switch kind + " " + refType {
	case "create branch":
		return "branch.created"
	case "delete branch":
		return "branch.deleted"
	case "create tag":
		return "tag.created"
	}
	return ""
}

// pageOf is the page of the issue or pull request, else of the repository.
func pageOf(payload map[string]any) string {
	for _, member := range []string{"pull_request", "issue", "repository"} {
		if page := textAt(objectAt(payload, member), "html_url"); page != "" {
			return page
		}
	}
	return ""
}

// timeOf is when it happened, as far as the payload says, else when it came.
func timeOf(payload map[string]any, received time.Time) string {
	for _, at := range []struct{ object, member string }{
		{"comment", "updated_at"},
		{"review", "submitted_at"},
		{"release", "published_at"},
		{"issue", "updated_at"},
		{"pull_request", "updated_at"},
	} {
		text := textAt(objectAt(payload, at.object), at.member)
		if text != "" && checkTime(at.member, text) == nil {
			return text
		}
	}
	return received.UTC().Format(time.RFC3339)
}

func senderOf(payload map[string]any) *Actor {
	sender := objectAt(payload, "sender")
	if textAt(sender, "login") == "" {
		return nil
	}
	return &Actor{
		Login: textAt(sender, "login"), DisplayName: textAt(sender, "name"),
		AvatarURL: textAt(sender, "avatar_url"), URL: textAt(sender, "html_url"),
	}
}

func (a *Actor) check() error {
	if a == nil {
		return nil
	}
	for _, err := range []error{
		checkText("sender.login", a.Login, maxLogin),
		checkText("sender.name", a.DisplayName, maxLogin),
		checkText("sender.avatar_url", a.AvatarURL, maxActorURL),
		checkText("sender.html_url", a.URL, maxActorURL),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func objectAt(object map[string]any, member string) map[string]any {
	inner, _ := object[member].(map[string]any)
	return inner
}

func textAt(object map[string]any, member string) string {
	text, _ := object[member].(string)
	return text
}
