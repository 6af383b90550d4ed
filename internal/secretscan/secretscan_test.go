package secretscan_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/apitomy/axiom-operator/internal/jsonvalue"
	"github.com/apitomy/axiom-operator/internal/secretscan"
)

var shared = sync.OnceValues(secretscan.New)

func scanner(t testing.TB) *secretscan.Scanner {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Tokens are put together here, so that no scanner finds one in this file.
var (
	gitHubToken = "gh" + "p_" + "R7kQ2mZx9LcVt4WbN8sYfH3jD6pGaE1uXo5T"
	awsKey      = "AK" + "IA" + "QYLPMN5HFIQR7XYA"
	pemKey      = "-----BEGIN " + "RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEowIBAAKCAQEAvZ3kq1", 8) + "\n-----END " + "RSA PRIVATE KEY-----"
)

func TestHits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"a token of a forge":             {"see " + gitHubToken, "github-pat at line 1, column 5"},
		"behind a comment of permission": {"x\n" + gitHubToken + " # gitleaks:allow", "github-pat at line 2, column 1"},
		"a token of a cloud":             {"id: " + awsKey + "\n", "aws-access-token at line 1, column 5"},
		"a private key":                  {"日本 " + pemKey, "private-key at line 1, column 4"},
		"a bearer header":                {"curl -H 'X: Bearer abc123def456'", "bearer-header at line 1, column 13"},
		"authorization":                  {"Authorization: Basic dXNlcjpwYXNzMQ==", "secret-field at line 1, column 1"},
		"a quoted member":                {`{"password": "hunter two"}`, "secret-field at line 1, column 3"},
		"nested JSON":                    {`{"body": "{\"apiKey\": \"qwerty\"}"}`, "secret-field at line 1, column 14"},
		"an assignment":                  {"a\n  password=hunter2", "secret-field at line 2, column 3"},
		"a value behind a placeholder":   {"password: ${X}\npasswd: hunter2", "secret-field at line 2, column 1"},
		"a field behind a field":         {"password: passwd: 'sesame'", "secret-field at line 1, column 11"},
		"a placeholder with a tail":      {`password: "${X}hunter2"`, "secret-field at line 1, column 1"},
		"the first of two":               {"password='qwerty' " + gitHubToken, "secret-field at line 1, column 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hit := scanner(t).Text(tc.text)
			if hit == nil {
				t.Fatal("no hit")
			}
			if hit.String() != tc.want {
				t.Errorf("%s, want %s", hit, tc.want)
			}
		})
	}
}

func TestSpellingsOfFields(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		"api key", "access token", "refresh token", "client secret", "session token", "secret key", "private key", "auth token", "authorization", "password", "passwd",
	} {
		for _, spelt := range spellings(words) {
			if hit := scanner(t).Value(map[string]any{"a/b": []any{map[string]any{spelt: "sesame"}}}); hit == nil || hit.String() != "secret-field at /a~1b/0/"+spelt+", line 1, column 1" {
				t.Errorf("member %s: %v", spelt, hit)
			}
			for _, text := range []string{spelt + ": s3same", spelt + "=s3same", `"` + spelt + `": "sesame"`, spelt + " := 'sesame'", strings.ToUpper(spelt) + "=s3same"} {
				if scanner(t).Text(text) == nil {
					t.Errorf("%s: no hit", text)
				}
			}
		}
	}
}

// spellings are a name in camel, snake, kebab and spaced spelling.
func spellings(words string) []string {
	first, second, isTwo := strings.Cut(words, " ")
	if !isTwo {
		return []string{words}
	}
	camel := first + strings.ToUpper(second[:1]) + second[1:]
	return []string{camel, first + "_" + second, first + "-" + second, words}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"", " ", "${TOKEN}", "${{ context.token }}", "${{ secrets.TOKEN }}", "{{ .token }}", "$TOKEN", "%TOKEN%", "{env:TOKEN}", "<token>", "***", "xxxx", "XXXXXXXX", "…",
		"changeme", "change-me", "ChangeMe", "your-password", "replace_me", "placeholder", "[redacted]", "REDACTED", "string", "null", "context.password",
		"inputs.token", "process.env.TOKEN", "Bearer ${TOKEN}", "Bearer <token>",
	} {
		if hit := scanner(t).Value(map[string]any{"password": value}); hit != nil {
			t.Errorf("member with %q: %v", value, hit)
		}
		if hit := scanner(t).Text(`{"password": "` + value + `"}`); hit != nil {
			t.Errorf("text with %q: %v", value, hit)
		}
		if hit := scanner(t).Text("password: " + value + "\n"); hit != nil {
			t.Errorf("line with %q: %v", value, hit)
		}
	}
}

func TestOrdinaryTextIsNoSecret(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256([]byte("x"))
	for _, text := range []string{
		"", "The password must have eight characters, and the API key: none at all.", "Password: must be set by an administrator.",
		"Authorization: the plan stands as approved by the user.", "authorization: context.authorization", "a bearer of responsibilities, bearer authentication",
		"8f0f2c7d2b5b6b1d9a2f4c3e5d6a7b8c9d0e1f2a", "commit: 8f0f2c7d2b5b6b1d9a2f4c3e5d6a7b8c9d0e1f2a",
		"sha256:" + hex.EncodeToString(digest[:]), `"digest": "` + hex.EncodeToString(digest[:]) + `"`,
		"123e4567-e89b-12d3-a456-426614174000", `{"uid": "123e4567-e89b-12d3-a456-426614174000"}`,
		base64.StdEncoding.EncodeToString([]byte(strings.Repeat("An ordinary text, of no interest to anybody. ", 40))),
		"func login(password string) error {\n\tif password == \"\" {\n\t\treturn errNoPassword\n\t}\n\tapiKey := os.Getenv(\"API_KEY\")\n\ttoken := newToken(apiKey)\n}",
		"const password = user.password;\nlet privateKey: string;\npassword = readPassword2()\nself.password = None", "interface A { accessToken?: string; password: string }",
		`{"type": "object", "properties": {"password": {"type": "string"}, "apiKey": {"type": "string", "minLength": 1}}}`,
		"https://github.com/acme/app/pull/12",
		"inputs: {agent: context.agent, session: \"'user-checkpoint'\"}", "credentialsRef: {name: workflows-read}", "key: missing-timeout-in-client",
		`{"kind":"proposal","proposal":{"changes":{"operations":[{"write":{"path":"health.md","content":"# Health\n"}}]},"title":"Add health"}}`,
	} {
		if hit := scanner(t).Text(text); hit != nil {
			t.Errorf("%.60q: %v", text, hit)
		}
	}
}

// What people write for the operator is no secret: its samples pass, all of them.
func TestSamplesAreNoSecrets(t *testing.T) {
	t.Parallel()
	samples, err := filepath.Glob("../../config/samples/*/*")
	if err != nil || len(samples) == 0 {
		t.Fatalf("samples %v: %v", samples, err)
	}
	for _, sample := range samples {
		text, err := os.ReadFile(sample)
		if err != nil {
			continue // a directory
		}
		if hit := scanner(t).Text(string(text)); hit != nil {
			t.Errorf("%s: %v", sample, hit)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value any
		want  string
	}{
		"no strings":       {[]any{nil, true, int64(1), 1.5, map[string]any{"a": nil}}, ""},
		"in a list":        {[]any{"a", "b\n" + gitHubToken}, "github-pat at /1, line 2, column 1"},
		"a name":           {map[string]any{"a": "b", gitHubToken: "c"}, "github-pat at /#1, line 1, column 1"},
		"by name":          {map[string]any{"password": "hunter2", "a": gitHubToken}, "github-pat at /a, line 1, column 1"},
		"no text":          {map[string]any{"password": int64(5), "apiKey": map[string]any{"type": "string"}}, ""},
		"a record":         {map[string]any{"authorization": "Go on with the plan as it is."}, ""},
		"a scalar":         {gitHubToken, "github-pat at line 1, column 1"},
		"nothing of JSON":  {map[string]any{"a": struct{}{}}, "scanner-error at /a, line 1, column 1"},
		"text of a member": {map[string]any{"body": `{"password":"hunter2"}`}, "secret-field at /body, line 1, column 3"},
	} {
		got := ""
		if hit := scanner(t).Value(tc.value); hit != nil {
			got = hit.String()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestFailingScannerDenies(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*secretscan.Scanner{"supervised 52: without rules": {}, "supervised 52: no scanner": nil} {
		for _, value := range []any{"a", nil, int64(1), []any{}, map[string]any{}} {
			var hit *secretscan.Hit
			if err := s.CheckValue(value); !errors.As(err, &hit) || hit.Rule != secretscan.RuleError {
				t.Errorf("%s: %v passes: %v", name, value, err)
			}
		}
		if err := s.CheckText(""); err == nil || err.Error() != "SECRET_DETECTED: scanner-error at line 1, column 1" {
			t.Errorf("%s: a text gives %v", name, err)
		}
	}
	if err := scanner(t).CheckText("a"); err != nil {
		t.Errorf("error %v", err)
	}
	if err := scanner(t).CheckValue("a"); err != nil {
		t.Errorf("error %v", err)
	}
}

// Goroutines may share a scanner.
func TestSharedScanner(t *testing.T) {
	t.Parallel()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if scanner(t).Text(gitHubToken) == nil {
				t.Error("no hit")
			}
		})
	}
	group.Wait()
}

// Nothing panics, and a message tells nothing of a text but what names a rule may have.
func FuzzScan(f *testing.F) {
	for _, text := range []string{gitHubToken, `{"password":"hunter2"}`, "Bearer abc123def456", `{"a":[{"apiKey":"x1y2z3"}]}`, "password: ${X}"} {
		f.Add(text)
	}
	s := scanner(f)
	f.Fuzz(func(t *testing.T, text string) {
		if hit := s.Text(text); hit != nil && strings.Trim(hit.Error(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz0123456789-:, ") != "" {
			t.Errorf("message %q", hit.Error())
		}
		if hit := s.Text("\n" + text + "\n" + gitHubToken); hit == nil || strings.Contains(hit.Error(), gitHubToken) {
			t.Errorf("hit %v", hit)
		}
		if value, err := jsonvalue.Decode([]byte(text)); err == nil {
			_ = s.Value(value)
		}
	})
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("The api of a token reads: key of the secret access, and so on in the file.\nfunc key() (token string) { return api(auth) }\n", 256<<10/120)
	s := scanner(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_ = s.Text(text)
	}
}
