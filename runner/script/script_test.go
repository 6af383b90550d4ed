package script

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/gateway/client"
	"github.com/apitomy/axiom-operator/gateway/openapi"
	"github.com/apitomy/axiom-operator/runner/process"
)

// attempt is an action pod in a directory.
type attempt struct {
	script         Script
	stdout, stderr strings.Builder
	dir            string
}

func newAttempt(t *testing.T, interpreter, script, inputs string, environ ...string) *attempt {
	t.Helper()
	a := &attempt{dir: t.TempDir()}
	for name, text := range map[string]string{"script": script, "inputs.json": inputs} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.script = Script{
		Interpreter: interpreter, Path: filepath.Join(a.dir, "script"),
		Environ: append([]string{
			"PATH=" + os.Getenv("PATH"), EnvInputs + "=" + filepath.Join(a.dir, "inputs.json"),
			EnvOutputs + "=" + filepath.Join(a.dir, "outputs.json"), "AXIOM_ATTEMPT_TOKEN=tok-0123456789", "AXIOM_API_URL=https://gateway",
		}, environ...),
		Stdout: &a.stdout, Stderr: &a.stderr, Children: &process.Children{}, Grace: Grace,
	}
	return a
}

func TestResults(t *testing.T) {
	large := `{"a":"` + strings.Repeat("x", MaxOutputs-8) + `"}`
	cases := map[string]struct {
		script string
		want   openapi.AttemptResult
	}{
		"outputs":              {`echo '{"a": 1}' > $AXIOM_OUTPUTS`, openapi.AttemptResult{Outputs: []byte("{\"a\": 1}\n")}},
		"no file":              {`true`, openapi.AttemptResult{Outputs: []byte(`{}`)}},
		"empty file":           {`: > $AXIOM_OUTPUTS`, openapi.AttemptResult{Outputs: []byte(`{}`)}},
		"blank file":           {`echo > $AXIOM_OUTPUTS`, openapi.AttemptResult{Outputs: []byte(`{}`)}},
		"list":                 {`echo '[1]' > $AXIOM_OUTPUTS`, failed(0, "INVALID_RESULT", "the outputs are no JSON object")},
		"no JSON":              {`echo '{"a"' > $AXIOM_OUTPUTS`, failed(0, "INVALID_RESULT", "the outputs are no JSON: ")},
		"two values":           {`echo '{} {}' > $AXIOM_OUTPUTS`, failed(0, "INVALID_RESULT", "the outputs are no JSON: ")},
		"directory":            {`mkdir $AXIOM_OUTPUTS`, failed(0, "INVALID_RESULT", "the outputs cannot be read: it is no regular file")},
		"pipe":                 {`mkfifo $AXIOM_OUTPUTS`, failed(0, "INVALID_RESULT", "the outputs cannot be read: it is no regular file")},
		"largest":              {`cp largest $AXIOM_OUTPUTS`, openapi.AttemptResult{Outputs: []byte(large)}},
		"too large":            {`(cat largest; echo) > $AXIOM_OUTPUTS`, failed(0, "RESULT_TOO_LARGE", "the outputs are larger than 262144 bytes")},
		"exit code":            {`echo '{"a": 1}' > $AXIOM_OUTPUTS; exit 9`, openapi.AttemptResult{ExitCode: 9}},
		"signal":               {`kill -KILL $$`, openapi.AttemptResult{ExitCode: 137}},
		"child holds the pipe": {`sleep 3600 & exit 0`, openapi.AttemptResult{Outputs: []byte(`{}`)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t, "bash", strings.ReplaceAll(tc.script, "largest", "$(dirname $AXIOM_OUTPUTS)/largest"), "{}")
			if err := os.WriteFile(filepath.Join(a.dir, "largest"), []byte(large), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := a.script.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.Error != nil && tc.want.Error != nil && strings.HasPrefix(got.Error.Message, tc.want.Error.Message) {
				got.Error.Message = tc.want.Error.Message // the rest is the decoder's
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScriptSeesItsInputsAndNothingOfTheWrapper(t *testing.T) {
	a := newAttempt(t, "bash", `env | grep ^AXIOM_ | sort; cat $AXIOM_INPUTS`, `{"ref": "r", "n": 3, "Case_2": {"b": 1}, "not-a-name": 1, "nil": null}`)
	if _, err := a.script.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		`AXIOM_INPUTS=` + a.dir + `/inputs.json`, `AXIOM_INPUT_Case_2={"b":1}`, `AXIOM_INPUT_n=3`, `AXIOM_INPUT_nil=`, `AXIOM_INPUT_ref=r`,
		`AXIOM_OUTPUTS=` + a.dir + `/outputs.json`, `{"ref": "r", "n": 3, "Case_2": {"b": 1}, "not-a-name": 1, "nil": null}`,
	}, "\n")
	if diff := cmp.Diff(want, a.stdout.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestInputVariables(t *testing.T) {
	cases := map[string]struct {
		inputs string
		want   []string
	}{
		"none":         {`{}`, nil},
		"kinds":        {`{"b": true, "f": 1.50, "l": [1, "x"], "s": "a\nb"}`, []string{"AXIOM_INPUT_b=true", "AXIOM_INPUT_f=1.5", `AXIOM_INPUT_l=[1,"x"]`, "AXIOM_INPUT_s=a\nb"}},
		"names":        {`{"_a": 1, "a1": 2, "1a": 3, "a.b": 4, "": 5, "é": 6}`, []string{"AXIOM_INPUT__a=1", "AXIOM_INPUT_a1=2"}},
		"NUL":          {`{"a": "x\u0000y", "b": {"c": "\u0000"}}`, []string{`AXIOM_INPUT_b={"c":"\u0000"}`}},
		"largest":      {`{"a": "` + strings.Repeat("x", maxVariable) + `"}`, []string{"AXIOM_INPUT_a=" + strings.Repeat("x", maxVariable)}},
		"over largest": {`{"a": "` + strings.Repeat("x", maxVariable+1) + `"}`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := inputVariables([]byte(tc.inputs))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAttemptsThatCannotBeMade(t *testing.T) {
	cases := map[string]struct {
		change func(*attempt)
		inputs string
		want   string
	}{
		"unknown interpreter": {func(a *attempt) { a.script.Interpreter = "perl" }, "{}", `interpreter "perl" is none of bash, node, python`},
		"inputs are no JSON":  {func(*attempt) {}, "{", "read inputs"},
		"inputs are a list":   {func(*attempt) {}, "[]", "read inputs: the inputs are no JSON object"},
		"no inputs":           {func(a *attempt) { _ = os.Remove(filepath.Join(a.dir, "inputs.json")) }, "{}", "read inputs: open"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := newAttempt(t, "bash", "true", tc.inputs)
			tc.change(a)
			if _, err := a.script.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

func TestInterpreters(t *testing.T) {
	dir := t.TempDir()
	// A program that only says which it is.
	install := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+" runs $(basename $1)\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	runs := func(interpreter string) (openapi.AttemptResult, string) {
		a := newAttempt(t, interpreter, "", "{}")
		a.script.Environ = append(a.script.Environ, "PATH=/usr/bin:/bin")
		result, err := a.script.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return result, a.stdout.String()
	}
	for interpreter, programs := range map[string]string{"bash": "bash", "node": "node", "python": "python3 and no python"} {
		got, _ := runs(interpreter)
		want := failed(127, "EXIT_CODE", "the image has no "+programs+", which is what "+interpreter+" scripts run with")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", interpreter, diff)
		}
	}
	for _, step := range []struct{ install, interpreter string }{{"bash", "bash"}, {"node", "node"}, {"python", "python"}, {"python3", "python"}} {
		install(step.install)
		if _, out := runs(step.interpreter); out != step.install+" runs script\n" {
			t.Errorf("%s: output %q", step.interpreter, out)
		}
	}
}

func TestOutputPassesThroughWithoutSecrets(t *testing.T) {
	a := newAttempt(t, "bash", `echo "out $DEPLOY_KEY_FILE"; printf "err $DEPLOY" >&2`, "{}", "DEPLOY=hunter2-hunter2", "AXIOM_SECRET_ENV=DEPLOY")
	if _, err := a.script.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a.stdout.String() != "out \n" || a.stderr.String() != "err [redacted]" {
		t.Errorf("output %q and %q", a.stdout.String(), a.stderr.String())
	}
}

func TestPodThatEndsStopsTheScript(t *testing.T) {
	for name, script := range map[string]string{
		"obeys":    `echo go > fifo; sleep 3600`,
		"does not": `trap '' TERM; echo go > fifo; while :; do read x < fifo; done`,
	} {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			a := newAttempt(t, "bash", strings.ReplaceAll(script, "fifo", fifo), "{}")
			a.script.Grace = time.Millisecond
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				_, _ = os.ReadFile(fifo) // returns once the script writes
				stop()
			}()
			if _, err := a.script.Run(ctx); !errors.Is(err, ErrStopped) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestDeliver(t *testing.T) {
	refusal := func(status int) error { return &client.Problem{Problem: openapi.Problem{Status: status}} }
	outputs := openapi.AttemptResult{Outputs: []byte(`{}`)}
	cases := map[string]struct {
		result    openapi.AttemptResult
		errs      []error
		wantCodes []string
		wantError bool
	}{
		"taken":                     {outputs, []error{nil}, []string{""}, false},
		"too large":                 {outputs, []error{refusal(413), nil}, []string{"", "RESULT_TOO_LARGE"}, false},
		"too large without outputs": {openapi.AttemptResult{ExitCode: 1}, []error{refusal(413)}, []string{""}, true},
		"refused":                   {outputs, []error{refusal(401)}, []string{""}, true},
		"refused in the end":        {outputs, []error{refusal(413), refusal(401)}, []string{"", "RESULT_TOO_LARGE"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var codes []string
			err := Deliver(t.Context(), func(_ context.Context, result openapi.AttemptResult) error {
				code := ""
				if result.Error != nil {
					code = result.Error.Code
				}
				codes = append(codes, code)
				return tc.errs[len(codes)-1]
			}, tc.result)
			if (err != nil) != tc.wantError {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.wantCodes, codes); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzInputVariables: every variable is one that a program can be started
// with.
func FuzzInputVariables(f *testing.F) {
	f.Add(`{"a": 1, "b-c": "x", "d": "\u0000"}`)
	f.Fuzz(func(t *testing.T, inputs string) {
		variables, err := inputVariables([]byte(inputs))
		if err != nil {
			return
		}
		for _, variable := range variables {
			name, value, ok := strings.Cut(variable, "=")
			if !ok || !identifier.MatchString(name) || strings.ContainsRune(value, 0) || len(value) > maxVariable {
				t.Errorf("variable %s", strconv.Quote(variable))
			}
		}
	})
}

func TestOutputsCarryNoSecretOut(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"a secret":             {`echo '{"a": "x '$DB_URL'", "'$DB_URL'": [1e2]}' > $AXIOM_OUTPUTS`, `{"[redacted]":[100],"a":"x [redacted]"}`},
		"a large integer":      {`echo '{"n": 9007199254740993, "a": "'$DB_URL'<"}' > $AXIOM_OUTPUTS`, `{"a":"[redacted]<","n":9007199254740993}`},
		"an escaped secret":    {`echo '{"a": "postgres:\/\/db\u0031"}' > $AXIOM_OUTPUTS`, `{"a":"[redacted]"}`},
		"what only sounds so":  {`echo '{"a": "'$SORT_KEY'"}' > $AXIOM_OUTPUTS`, `{"a": "department"}` + "\n"},
		"no secret":            {`echo '{"a": 1.0}' > $AXIOM_OUTPUTS`, `{"a": 1.0}` + "\n"},
		"the wrapper's token":  {`echo '{"a": "tok-0123456789"}' > $AXIOM_OUTPUTS`, `{"a":"[redacted]"}`},
		"too short to be told": {`echo '{"a": "'$PIN'"}' > $AXIOM_OUTPUTS`, `{"a": "1234"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttempt(t, "bash", tc.script, "{}", "AXIOM_SECRET_ENV=DB_URL,PIN,ABSENT", "DB_URL=postgres://db1", "PIN=1234", "SORT_KEY=department")
			got, err := a.script.Run(t.Context())
			if err != nil || string(got.Outputs) != tc.want {
				t.Errorf("got %s (%v), want %s", got.Outputs, err, tc.want)
			}
		})
	}
}
