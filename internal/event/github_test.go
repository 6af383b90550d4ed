package event

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var received = time.Date(2026, 5, 4, 10, 0, 0, 5, time.UTC)

func TestTypesOfGitHub(t *testing.T) {
	t.Parallel()
	produced := map[string]bool{}
	for _, tc := range []struct{ kind, body, want string }{
		{"issues", `{"action":"opened"}`, "issue.created"},
		{"issues", `{"action":"edited"}`, "issue.updated"},
		{"issues", `{"action":"closed"}`, "issue.closed"},
		{"issues", `{"action":"reopened"}`, "issue.reopened"},
		{"issues", `{"action":"assigned"}`, "issue.assigned"},
		{"issues", `{"action":"unassigned"}`, "issue.unassigned"},
		{"issues", `{"action":"labeled"}`, "issue.labeled"},
		{"issues", `{"action":"unlabeled"}`, "issue.unlabeled"},
		{"issues", `{"action":"pinned"}`, ""},
		{"issues", `{"action":7}`, ""},
		{"issue_comment", `{"action":"created","issue":{}}`, "issue.comment.created"},
		{"issue_comment", `{"action":"edited","issue":{}}`, "issue.comment.updated"},
		{"issue_comment", `{"action":"deleted","issue":{}}`, "issue.comment.deleted"},
		{"issue_comment", `{"action":"created","issue":{"pull_request":{}}}`, "pr.comment.created"},
		{"issue_comment", `{"action":"edited","issue":{"pull_request":{}}}`, ""},
		{"pull_request", `{"action":"opened"}`, "pr.created"},
		{"pull_request", `{"action":"closed","pull_request":{"merged":false}}`, "pr.closed"},
		{"pull_request", `{"action":"closed","pull_request":{"merged":true}}`, "pr.merged"},
		{"pull_request", `{"action":"reopened"}`, "pr.reopened"},
		{"pull_request", `{"action":"review_requested"}`, "pr.review_requested"},
		{"pull_request", `{"action":"labeled"}`, "pr.labeled"},
		{"pull_request", `{"action":"unlabeled"}`, "pr.unlabeled"},
		{"pull_request", `{"action":"synchronize"}`, "pr.synchronize"},
		{"pull_request", `{"action":"locked"}`, ""},
		{"pull_request_review", `{"action":"submitted"}`, "pr.review.submitted"},
		{"pull_request_review", `{"action":"dismissed"}`, ""},
		{"pull_request_review_comment", `{"action":"created"}`, "pr.comment.created"},
		{"push", `{}`, "push"},
		{"create", `{"ref_type":"branch"}`, "branch.created"},
		{"delete", `{"ref_type":"branch"}`, "branch.deleted"},
		{"create", `{"ref_type":"tag"}`, "tag.created"},
		{"delete", `{"ref_type":"tag"}`, ""},
		{"release", `{"action":"published"}`, "release.published"},
		{"release", `{"action":"created"}`, ""},
		{"ping", `{"zen":"Keep it logically awesome."}`, ""},
		{"star", `{"action":"created"}`, ""},
	} {
		e, err := GitHub(tc.kind, "d-1", []byte(tc.body), received)
		if err != nil {
			t.Errorf("%s %s: %v", tc.kind, tc.body, err)
			continue
		}
		got := ""
		if e != nil {
			got = e.Type
			produced[got] = true
		}
		if got != tc.want {
			t.Errorf("%s %s: got %q, want %q", tc.kind, tc.body, got, tc.want)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(produced)), slices.Sorted(slices.Values(GitHubTypes()))); diff != "" {
		t.Errorf("types that are listed (-produced +listed):\n%s", diff)
	}
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	const body = `{"action":"closed","pull_request":{"merged":true,"html_url":"https://github.com/o/r/pull/7","updated_at":"2026-05-04T09:00:00Z"},
		"repository":{"html_url":"https://github.com/o/r"},
		"sender":{"login":"octo","avatar_url":"https://a","html_url":"https://github.com/octo"}}`
	got, err := GitHub("pull_request", "d-1", []byte(body), received)
	if err != nil {
		t.Fatal(err)
	}
	if got.Payload["action"] != "closed" {
		t.Errorf("the payload is not the body: %v", got.Payload)
	}
	got.Payload = nil
	want := &Event{
		SenderID: "d-1", Type: "pr.merged", Source: "github", Ref: "https://github.com/o/r/pull/7", Timestamp: "2026-05-04T09:00:00Z",
		Actor: &Actor{Login: "octo", AvatarURL: "https://a", URL: "https://github.com/octo"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
}

func TestWhatAGitHubDeliveryIsAbout(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kind, body, ref, timestamp string }{
		"an issue":          {"issues", `{"action":"opened","issue":{"html_url":"i","updated_at":"2026-05-04T09:00:00Z"},"repository":{"html_url":"r"}}`, "i", "2026-05-04T09:00:00Z"},
		"a comment":         {"issue_comment", `{"action":"created","issue":{"html_url":"i"},"comment":{"updated_at":"2026-05-04T09:30:00Z"}}`, "i", "2026-05-04T09:30:00Z"},
		"a repository":      {"push", `{"repository":{"html_url":"r"}}`, "r", "2026-05-04T10:00:00Z"},
		"nothing":           {"push", `{"repository":"r","sender":{}}`, "", "2026-05-04T10:00:00Z"},
		"a time that is no": {"release", `{"action":"published","release":{"published_at":"soon"}}`, "", "2026-05-04T10:00:00Z"},
	} {
		e, err := GitHub(tc.kind, "d", []byte(tc.body), received)
		if err != nil || e.Ref != tc.ref || e.Timestamp != tc.timestamp || e.Actor != nil {
			t.Errorf("%s: got %+v, error %v", name, e, err)
		}
	}
}

func TestGitHubDeliveriesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kind, delivery, body, want string }{
		"no kind":         {"", "d", `{}`, "X-GitHub-Event is required"},
		"no id":           {"push", " ", `{}`, "X-GitHub-Delivery is required"},
		"no JSON":         {"push", "d", `payload=%7B%7D`, "body must be a JSON object"},
		"a list":          {"push", "d", `[]`, "body must be a JSON object"},
		"a page too long": {"push", "d", `{"repository":{"html_url":"` + strings.Repeat("x", 2049) + `"}}`, "html_url has 2049 characters"},
		"a line break":    {"push", "d", `{"repository":{"html_url":"a\nb"}}`, "html_url must not have control characters"},
		"an odd login":    {"push", "d", `{"sender":{"login":"a\u0000b"}}`, "sender.login must not have control characters"},
	} {
		_, err := GitHub(tc.kind, tc.delivery, []byte(tc.body), received)
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got error %v, want %q", name, err, tc.want)
		}
	}
}

func TestIsSigned(t *testing.T) {
	t.Parallel()
	// The example of GitHub's documentation.
	secret, body := []byte("It's a Secret to Everybody"), []byte("Hello, World!")
	const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if !IsSigned(secret, body, signature) {
		t.Error("the true signature is refused")
	}
	for name, tc := range map[string]struct {
		secret, body []byte
		signature    string
	}{
		"another body":         {secret, []byte("Hello, World?"), signature},
		"another secret":       {[]byte("x"), body, signature},
		"no signature":         {secret, body, ""},
		"no algorithm":         {secret, body, strings.TrimPrefix(signature, "sha256=")},
		"another algorithm":    {secret, body, strings.Replace(signature, "sha256", "sha1", 1)},
		"half a signature":     {secret, body, signature[:40]},
		"a signature and more": {secret, body, signature + "00"},
		"no digits":            {secret, body, "sha256=zz"},
		"an empty one":         {secret, body, "sha256="},
		// HMAC of the body under an empty key.
		"an empty secret": {nil, []byte{}, "sha256=b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"},
	} {
		if IsSigned(tc.secret, tc.body, tc.signature) {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestNamesTellEventsApart(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for _, e := range []struct{ source, ingest, id string }{
		{"a", "b", "c"}, {"ab", "", "c"}, {"", "ab", "c"}, {"a", "bc", ""}, {"a", "", "bc"}, {"1:a", "b", "c"}, {"a", "b", "c2"},
	} {
		name := Event{Source: e.source, SenderID: e.id}.Name(e.ingest)
		if other, taken := names[name]; taken {
			t.Errorf("%v has the name of %s", e, other)
		}
		names[name] = e.source + "|" + e.ingest + "|" + e.id
	}
	if got, want := (Event{Source: "github", SenderID: "d-1"}).Name("gh"), "ev-"; !strings.HasPrefix(got, want) || len(got) != 43 {
		t.Errorf("got %q: a name must not change, events are found by it", got)
	}
	same := Event{Source: "s", SenderID: "i", Type: "a", Payload: map[string]any{"x": 1}}.Name("g")
	if other := (Event{Source: "s", SenderID: "i", Type: "b"}).Name("g"); other != same {
		t.Errorf("content changes the name: %q and %q", same, other)
	}
}
