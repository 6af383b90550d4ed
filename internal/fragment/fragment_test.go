package fragment_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/fragment"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

// A tree of entries by path.
type tree map[string]fragment.Kind

func (t tree) Kind(path string) (fragment.Kind, error) { return t[path], nil }

var here = tree{
	"README.md": fragment.File, "run.sh": fragment.Executable, "src": fragment.Directory, "src/a.go": fragment.File, "link": fragment.Symlink,
	"sub": fragment.Submodule, "ci": fragment.Directory, "ci/x.yml": fragment.File,
}

var errSecret = errors.New("somewhere")

func pass(any) error { return nil }

// gate finds one word.
func gate(value any) error {
	text, err := jsonvalue.StringForm(value)
	if err != nil || strings.Contains(text, "sesame") {
		return errSecret
	}
	return nil
}

var both = fragment.Options{Allow: []string{"read", "write"}, Exclude: []string{"ci/**"}}

func document(operations ...string) string {
	return `{"operations":[` + strings.Join(operations, ",") + `]}`
}

func read(path string) string { return fmt.Sprintf(`{"read":{"path":%q}}`, path) }

func write(path, content string) string {
	return fmt.Sprintf(`{"write":{"path":%q,"content":%q}}`, path, content)
}

func remove(path string) string { return fmt.Sprintf(`{"delete":{"path":%q}}`, path) }

func decode(t testing.TB, text string) any {
	t.Helper()
	value, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func many(n int) string {
	var operations []string
	for i := range n {
		operations = append(operations, read(fmt.Sprintf("f%d", i)))
	}
	return document(operations...)
}

// sized is a fragment of this many bytes of canonical JSON with files of permitted size.
func sized(n int) string {
	const first = 100 << 10
	head := document(write("a", strings.Repeat("a", first)), write("b", ""))
	return document(write("a", strings.Repeat("a", first)), write("b", strings.Repeat("b", n-canonicalSize(head))))
}

func canonicalSize(text string) int {
	value, _ := jsonvalue.Decode([]byte(text))
	return jsonvalue.Size(value)
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"reads and globs":                  {document(read("README.md"), read("none/x"), read("link"), read("src"), `{"glob":{"include":["**"],"exclude":["a"]}}`), ""},
		"writes and deletes":               {document(write("x/y", "${{ inputs.x }}"), write("run.sh", ""), remove("none"), remove("link"), remove("README.md/x")), ""},
		"64 operations":                    {many(64), ""},
		"65 operations":                    {many(65), "FRAGMENT_MALFORMED"},
		"192 KiB":                          {sized(fragment.MaxSize), ""},
		"a byte more":                      {sized(fragment.MaxSize + 1), "FRAGMENT_TOO_LARGE"},
		"a file of 128 KiB":                {document(write("a", strings.Repeat("a", fragment.MaxFile))), ""},
		"a file of a byte more":            {document(write("b", ""), write("a", strings.Repeat("a", fragment.MaxFile+1))), "FRAGMENT_TOO_LARGE: operation 1"},
		"size before form":                 {`"` + strings.Repeat("a", fragment.MaxSize) + `"`, "FRAGMENT_TOO_LARGE"},
		"no object":                        {`[]`, "FRAGMENT_MALFORMED"},
		"no operations":                    {`{"operations":[]}`, "FRAGMENT_MALFORMED"},
		"another member":                   {`{"operations":[` + read("a") + `],"x":1}`, "FRAGMENT_MALFORMED"},
		"operations no list":               {`{"operations":{}}`, "FRAGMENT_MALFORMED"},
		"two in one":                       {document(`{"read":{"path":"a"},"write":{}}`), "FRAGMENT_MALFORMED: operation 0"},
		"none in one":                      {document(read("a"), `{}`), "FRAGMENT_MALFORMED: operation 1"},
		"supervised 36: a component":       {document(`{"component":{}}`), "FRAGMENT_MALFORMED: operation 0"},
		"supervised 36: a fetch":           {document(`{"http.fetch":{}}`), "FRAGMENT_MALFORMED: operation 0"},
		"supervised 36: Git":               {document(`{"git.push":{}}`), "FRAGMENT_MALFORMED: operation 0"},
		"supervised 36: an issue":          {document(`{"issue.upsert":{}}`), "FRAGMENT_MALFORMED: operation 0"},
		"supervised 36: a process":         {document(`{"exec":{}}`), "FRAGMENT_MALFORMED: operation 0"},
		"supervised 36: a prompt":          {document(`{"agent.prompt":{}}`), "FRAGMENT_MALFORMED: operation 0"},
		"unknown before class":             {document(read("a"), write("b", ""), `{"x":{}}`), "FRAGMENT_MALFORMED: operation 2"},
		"two classes":                      {document(read("a"), write("b", "")), "FRAGMENT_CLASS: operation 1"},
		"class before form":                {document(read("a"), `{"write":{}}`), "FRAGMENT_CLASS: operation 1"},
		"form before path":                 {document(read("../a"), `{"read":{}}`), "FRAGMENT_FORM: operation 1"},
		"a member too many":                {document(`{"read":{"path":"a","x":1}}`), "FRAGMENT_FORM: operation 0"},
		"a wrong type":                     {document(`{"write":{"path":"a","content":1}}`), "FRAGMENT_FORM: operation 0"},
		"executable no flag":               {document(`{"write":{"path":"a","content":"","executable":null}}`), "FRAGMENT_FORM: operation 0"},
		"a glob of nothing":                {document(`{"glob":{"include":[]}}`), "FRAGMENT_FORM: operation 0"},
		"a glob of numbers":                {document(`{"glob":{"include":[1]}}`), "FRAGMENT_FORM: operation 0"},
		"exclude null":                     {document(`{"glob":{"include":["a"],"exclude":null}}`), "FRAGMENT_FORM: operation 0"},
		"a read of nothing":                {document(`{"read":null}`), "FRAGMENT_FORM: operation 0"},
		"no pattern":                       {document(`{"glob":{"include":["["]}}`), "FRAGMENT_PATH: operation 0"},
		"supervised 35: ..":                {document(read("a"), read("../a")), "FRAGMENT_PATH: operation 1"},
		"supervised 35: .git":              {document(write("a", ""), write(".GIT/config", "")), "FRAGMENT_PATH: operation 1"},
		"supervised 35: through a link":    {document(write("a", ""), write("link/a", "")), "FRAGMENT_PATH: operation 1"},
		"supervised 35: read through one":  {document(read("link/a")), "FRAGMENT_PATH: operation 0"},
		"supervised 35: in a submodule":    {document(write("a", ""), remove("sub/a")), "FRAGMENT_PATH: operation 1"},
		"supervised 35: the submodule":     {document(remove("sub")), "FRAGMENT_PATH: operation 0"},
		"supervised 35: excluded":          {document(write("a", ""), write("ci/x.yml", "")), "FRAGMENT_PATH: operation 1"},
		"writing a link":                   {document(write("link", "")), "FRAGMENT_PATH: operation 0"},
		"writing a directory":              {document(write("src", "")), "FRAGMENT_PATH: operation 0"},
		"deleting a directory":             {document(remove("src")), "FRAGMENT_PATH: operation 0"},
		"writing below a file":             {document(write("README.md/a", "")), "FRAGMENT_PATH: operation 0"},
		"path before duplicate":            {document(read("a"), read("a"), read("..")), "FRAGMENT_PATH: operation 2"},
		"a path twice":                     {document(read("a"), read("a")), "FRAGMENT_DUPLICATE: operation 1"},
		"written and deleted":              {document(write("a", ""), remove("a")), "FRAGMENT_DUPLICATE: operation 1"},
		"below a written one":              {document(write("a", ""), write("a/b", "")), "FRAGMENT_DUPLICATE: operation 1"},
		"above a written one":              {document(write("a/b", ""), write("c", ""), write("a", "")), "FRAGMENT_DUPLICATE: operation 2"},
		"beside one of the same beginning": {document(write("a", ""), write("ab", ""), write("a.b", "")), ""},
		"duplicate before file size":       {document(write("b", strings.Repeat("a", fragment.MaxFile+1)), remove("b")), "FRAGMENT_DUPLICATE: operation 1"},
		"a secret":                         {document(write("b", ""), write("a", "sesame")), "SECRET_DETECTED: operation 1"},
		"file size before secret":          {document(write("b", "sesame"), write("a", strings.Repeat("a", fragment.MaxFile+1))), "FRAGMENT_TOO_LARGE: operation 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value := decode(t, tc.text)
			got, err := fragment.Admit(value, both, here, gate)
			if tc.want != "" {
				if refusal, is := errors.AsType[*fragment.Refusal](err); !is || refusal.Error() != tc.want || got != nil {
					t.Errorf("%v, want %s", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(value, any(got.Value())); diff != "" {
				t.Errorf("changed (-given +admitted):\n%s", diff)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	readable, writable := decode(t, document(read("a"))), decode(t, document(write("a", "")))
	for name, tc := range map[string]struct {
		options fragment.Options
		value   any
		want    string
	}{
		"by default reads":                       {fragment.Options{}, readable, ""},
		"supervised 35: a write under the reads": {fragment.Options{Allow: []string{"read"}}, writable, "FRAGMENT_CLASS: operation 0"},
		"a read under the writes":                {fragment.Options{Allow: []string{"write"}}, readable, "FRAGMENT_CLASS: operation 0"},
		"nothing allowed":                        {fragment.Options{Allow: []string{}}, readable, "ACTION_CONTRACT"},
		"allowed twice":                          {fragment.Options{Allow: []string{"read", "read"}}, readable, "ACTION_CONTRACT"},
		"unknown":                                {fragment.Options{Allow: []string{"exec"}}, readable, "ACTION_CONTRACT"},
		"no pattern":                             {fragment.Options{Exclude: []string{"["}}, readable, "ACTION_CONTRACT"},
		"no pattern to include":                  {fragment.Options{Include: []string{""}}, readable, "ACTION_CONTRACT"},
		"not included":                           {fragment.Options{Include: []string{"b/**"}}, readable, "FRAGMENT_PATH: operation 0"},
	} {
		_, err := fragment.Admit(tc.value, tc.options, here, pass)
		if got := fmt.Sprint(err); got != tc.want && (tc.want != "" || err != nil) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if isWrong := tc.options.Check() != nil; isWrong != (tc.want == "ACTION_CONTRACT") {
			t.Errorf("%s: wrong options: %v", name, isWrong)
		}
	}
	if both.Selects("ci/a") || !both.Selects("a") || (fragment.Options{Allow: []string{}}).Selects("a") {
		t.Error("wrong paths are selected")
	}
}

func TestExecutableBit(t *testing.T) {
	t.Parallel()
	got, err := fragment.Admit(decode(t, document(write("run.sh", ""), write("README.md", ""), write("new", ""),
		`{"write":{"path":"src/a.go","content":"","executable":true}}`)), both, here, pass)
	if err != nil {
		t.Fatal(err)
	}
	var bits []bool
	for _, o := range got.Operations {
		bits = append(bits, o.IsExecutable())
	}
	if diff := cmp.Diff([]bool{true, false, false, true}, bits); diff != "" {
		t.Error(diff)
	}
	if got.Class != fragment.Write || !strings.HasPrefix(got.Digest, "sha256:") || len(got.Digest) != 71 {
		t.Errorf("class %s, digest %s", got.Class, got.Digest)
	}
}

var errLost = errors.New("lost")

type lost struct{}

func (lost) Kind(string) (fragment.Kind, error) { return "", errLost }

func TestTreeAndGateThatFail(t *testing.T) {
	t.Parallel()
	value := decode(t, document(read("a/b")))
	if _, err := fragment.Admit(value, both, lost{}, pass); !errors.Is(err, errLost) {
		t.Errorf("error %v, want that of the tree", err)
	} else if _, is := errors.AsType[*fragment.Refusal](err); is {
		t.Error("a tree that is lost refuses the fragment")
	}
	if _, err := fragment.Admit(value, both, here, nil); fmt.Sprint(err) != "SECRET_DETECTED" {
		t.Errorf("supervised 52: no gate gives %v", err)
	}
	_, err := fragment.Admit(decode(t, document(read("sesame"))), both, here, gate)
	if !errors.Is(err, errSecret) {
		t.Errorf("error %v does not hold that of the gate", err)
	}
}

// told is all that a refusal may say.
var told = regexp.MustCompile(`^FRAGMENT_[A-Z_]+(: operation [0-9]+)?$`)

// What is admitted reads back as it was, and stays in the tree; a refusal tells nothing of it.
func FuzzAdmit(f *testing.F) {
	f.Add(document(read("a"), `{"glob":{"include":["**/*.go"],"exclude":["x"]}}`))
	f.Add(document(write("a/b", "${{ x }}"), remove("old")))
	f.Add(document(write("../x", "")))
	f.Add(`{"operations":[{"secretword":1}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		value, err := jsonvalue.Decode([]byte(text))
		if err != nil {
			return
		}
		got, err := fragment.Admit(value, both, here, pass)
		if err != nil {
			if !told.MatchString(err.Error()) {
				t.Errorf("refusal %q", err)
			}
			return
		}
		if diff := cmp.Diff(value, any(got.Value())); diff != "" {
			t.Errorf("changed (-given +admitted):\n%s", diff)
		}
		for _, o := range got.Operations {
			if strings.HasPrefix(o.Path, "/") || strings.Contains("/"+o.Path+"/", "/../") || strings.HasPrefix(o.Path, "link/") {
				t.Errorf("path %q", o.Path)
			}
		}
	})
}
