package runner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnvironment(t *testing.T) {
	got, err := ParseEnvironment([]string{
		"PATH=/bin", "AXIOM_API_URL=https://gateway/api/v1", "AXIOM_SESSION_TOKEN=tok-0123456789", "AXIOM_CA_FILE=/ca.crt",
		"AXIOM_SESSION_ID=team-a/helper", "AXIOM_SESSION_ATTEMPT=3", "AXIOM_COMPOSITION_ID=team-a/triage", "AXIOM_MCP_COMMAND=/mcp",
		"MODEL_KEY=sk-1", "PLAIN=x", "AXIOM_SECRET_ENV=MODEL_KEY", "AXIOM_WHATEVER=y", "ODD=a=b",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Environment{
		APIURL: "https://gateway/api/v1", Token: "tok-0123456789", CAFile: "/ca.crt", Namespace: "team-a", Name: "helper", Attempt: 3,
		Composition: "team-a/triage", MCPCommand: "/mcp",
		Agent:   []string{"PATH=/bin", "MODEL_KEY=sk-1", "PLAIN=x", "ODD=a=b"},
		Secrets: []string{"tok-0123456789", "sk-1", "tok-0123456789"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestParseEnvironmentRefuses(t *testing.T) {
	complete := map[string]string{"AXIOM_API_URL": "u", "AXIOM_SESSION_TOKEN": "t", "AXIOM_SESSION_ID": "team-a/helper", "AXIOM_SESSION_ATTEMPT": "2"}
	cases := map[string]struct{ name, value, want string }{
		"no URL":       {"AXIOM_API_URL", "", "AXIOM_API_URL must be set"},
		"no token":     {"AXIOM_SESSION_TOKEN", "", "AXIOM_SESSION_TOKEN must be set"},
		"no session":   {"AXIOM_SESSION_ID", "", "AXIOM_SESSION_ID must be set"},
		"no namespace": {"AXIOM_SESSION_ID", "helper", "must be <namespace>/<name>"},
		"odd attempt":  {"AXIOM_SESSION_ATTEMPT", "first", `must be a positive number, not "first"`},
		"no attempt":   {"AXIOM_SESSION_ATTEMPT", "0", `must be a positive number, not "0"`},
		"no name":      {"AXIOM_SESSION_ID", "team-a/", "must be <namespace>/<name>"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var environ []string
			for variable, value := range complete {
				if variable == tc.name {
					value = tc.value
				}
				environ = append(environ, variable+"="+value)
			}
			if _, err := ParseEnvironment(environ); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestLastLineRemembersWhatWasSaidLast(t *testing.T) {
	cases := map[string]struct {
		writes []string
		want   string
	}{
		"nothing":    {nil, ""},
		"one":        {[]string{"a"}, "a"},
		"lines":      {[]string{"a\nb\n", "c\r\n", "\n \n"}, "c"},
		"in pieces":  {[]string{"a\nb", "c"}, "bc"},
		"long":       {[]string{strings.Repeat("x", 600)}, strings.Repeat("x", maxLastLine)},
		"cut letter": {[]string{"é" + strings.Repeat("x", maxLastLine-1)}, strings.Repeat("x", maxLastLine-1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var passed strings.Builder
			words := &lastLine{next: &passed}
			for _, text := range tc.writes {
				if _, err := words.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if got := words.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if got, want := passed.String(), strings.Join(tc.writes, ""); got != want {
				t.Errorf("passed on %q, want %q", got, want)
			}
		})
	}
}

func TestLingeringOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		longer, cancel := lingering(ctx, 10*time.Second)
		defer cancel()
		begin := time.Now()
		end()
		<-longer.Done()
		if after := time.Since(begin); after != 10*time.Second {
			t.Errorf("it ended after %s", after)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		longer, cancel := lingering(t.Context(), 10*time.Second)
		cancel()
		if longer.Err() == nil {
			t.Error("it goes on after it was cancelled")
		}
	})
}
