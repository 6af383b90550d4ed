package expression

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/debug"
)

// everyControl has each control character that could be a stand-in.
func everyControl() string {
	var b strings.Builder
	for r := rune(0x01); r < 0x20; r++ {
		if r < '\a' || r > '\r' {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestTextsBeyondASCII(t *testing.T) {
	cache := NewCache()
	for text, want := range map[string]any{
		`'é'`:                           "é",
		`"日本語" + '😀'`:                   "日本語😀",
		`'''é` + "\r\n" + `ü'''`:        "é\nü",
		`r'é\n'`:                        `é\n`,
		`'é\u00fc\xfcü'`:                "éüüü",
		`'é\001\x02\u0003\U00000004ü'`:  "é\x01\x02\x03\x04ü",
		`'é` + "\x01\x02" + `\X03ü'`:    "é\x01\x02\x03ü",
		`b'é\xff'`:                      "w6n/",
		`'é'.size() + size('日本語')`:      int64(4),
		"1 // é":                        int64(1),
		"// é\n'ü' // é\n + 'ö'":        "üö",
		`{'ä': 'ö'}['ä']`:               "ö",
		`['ä', 'é'].map(x, x + 'ü')[1]`: "éü",
		`['é'].sortBy(x, 'ü' + x)[0]`:   "é",
		`optional.of('é').optMap(x, x + 'ü').orValue('ö')`: "éü",
		`'%s ü'.format(['é'])`:                             "é ü",
		`'é'.matches('^é$')`:                               true,
	} {
		program, err := cache.Compile(ScopeActionInput, text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err := program.Eval(t.Context(), Variables{}); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
		assertParse(t, cache.environments[ScopeActionInput], text)
	}
}

func TestTextsBeyondASCIIThatAreWrong(t *testing.T) {
	cache := NewCache()
	for text, want := range map[string]string{
		"é":                         `1:1: Syntax error: token recognition error at: '�'`,
		"'é' + ü":                   `1:7: Syntax error: token recognition error at: '�'`,
		"'é' + nobody":              `1:7: undeclared reference to 'nobody'`,
		"'é" + "\n" + "'":           `1:1: Syntax error`,
		"context.`é`":               `1:9: Syntax error`,
		"'\xff'":                    "it is not valid UTF-8",
		"'\xed\xa0\x80'":            "it is not valid UTF-8",
		"'é" + everyControl() + "'": "too many different control characters",
	} {
		if _, err := cache.Compile(ScopeActionInput, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := cache.Compile(ScopeActionInput, "'"+everyControl()+"'"); err != nil {
		t.Errorf("control characters alone: %v", err)
	}
}

// assertParse checks that standing in for characters beyond ASCII makes no difference.
func assertParse(t *testing.T, env *cel.Env, text string) {
	t.Helper()
	want, issues := env.Parse(text)
	got, err := parse(env, text)
	if (issues.Err() == nil) != (err == nil) {
		t.Fatalf("%q: error %v, want %v", text, err, issues.Err())
	}
	if err != nil {
		return
	}
	if want, got := described(want), described(got); want != got {
		t.Errorf("%q is parsed as %s, want %s", text, got, want)
	}
}

// described tells literals apart by their type as well, and says where each part begins.
func described(parsed *cel.Ast) string {
	return debug.ToAdornedDebugString(parsed.NativeRep().Expr(), places{parsed})
}

type places struct{ *cel.Ast }

// GetMetadata implements [debug.Adorner].
func (p places) GetMetadata(element any) string {
	expr, ok := element.(interface{ ID() int64 })
	if !ok {
		return ""
	}
	at := p.NativeRep().SourceInfo().GetStartLocation(expr.ID())
	return fmt.Sprintf("@%d:%d", at.Line(), at.Column())
}
