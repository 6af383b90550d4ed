package source_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/apitomy/axiom-operator/cli/source"
	"github.com/apitomy/axiom-operator/internal/jsonvalue"
)

func parse(t testing.TB, name, text string) *source.Document {
	t.Helper()
	doc, err := source.Parse(name, []byte(text))
	if err != nil {
		t.Fatalf("Parse(%.200q): %v", text, err)
	}
	return doc
}

func TestValues(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want any
	}{
		"an object in block style":       {"a: 1\nb: [x, y]\n", map[string]any{"a": int64(1), "b": []any{"x", "y"}}},
		"an object in flow style":        {"{a: 1, b: [x, y]}", map[string]any{"a": int64(1), "b": []any{"x", "y"}}},
		"JSON":                           {`{"a": 1, "b": ["x", "y"]}`, map[string]any{"a": int64(1), "b": []any{"x", "y"}}},
		"JSON behind a byte order mark":  {"\ufeff[1]", []any{int64(1)}},
		"YAML behind a document marker":  {"---\na: 1\n...\n", map[string]any{"a": int64(1)}},
		"a document behind an empty one": {"---\n# from a template\n---\na: 1\n", map[string]any{"a": int64(1)}},
		"a document before empty ones":   {"a: 1\n---\n# nothing\n---\n", map[string]any{"a": int64(1)}},
		"a document that is null":        {"null\n---\n", nil},
		"an integral JSON double":        {`[1.0, 1e0, -0.0, 9007199254740993.0]`, []any{int64(1), int64(1), int64(0), int64(9007199254740993)}},
		"a JSON integer beyond int64":    {`[9223372036854775807, 9223372036854775808]`, []any{int64(9223372036854775807), float64(1 << 63)}},
		"a YAML integer beyond int64":    {"- 9223372036854775808\n- 18446744073709551616", []any{float64(1 << 63), float64(1 << 64)}},
		"an integral YAML double":        {"- 1.0\n- 1e3\n- -0.0\n- 0.5", []any{int64(1), int64(1000), int64(0), 0.5}},
		"other integers of YAML":         {"- 0x1F\n- 0o17\n- 0b11\n- 1_000\n- +5", []any{int64(31), int64(15), int64(3), int64(1000), int64(5)}},
		"booleans of YAML 1.2":           {"- true\n- False\n- TRUE", []any{true, false, true}},
		"words that are text":            {"- yes\n- Off\n- y", []any{"yes", "Off", "y"}},
		"nulls":                          {"- null\n- ~\n- \n- Null", []any{nil, nil, nil, nil}},
		"a time stamp is text":           {"- 2026-01-01\n- 2026-01-01T00:00:00Z", []any{"2026-01-01", "2026-01-01T00:00:00Z"}},
		"quoted scalars are text":        {"- '1'\n- \"true\"\n- 'null'", []any{"1", "true", "null"}},
		"texts over several lines":       {"a: |\n  x\n  y\nb: >\n  x\n  y\n", map[string]any{"a": "x\ny\n", "b": "x y\n"}},
		"explicit tags":                  {"- !!str 5\n- !!int '5'\n- !!bool 'true'\n- !!float 5", []any{"5", int64(5), true, int64(5)}},
		"binary that is text":            {"a: !!binary aGk=", map[string]any{"a": "hi"}},
		"keys that are no text":          {"1: a\ntrue: b\n1.5: c\n2001-01-01: d", map[string]any{"1": "a", "true": "b", "1.5": "c", "2001-01-01": "d"}},
		"an alias":                       {"a: &x {b: 1}\nc: *x", map[string]any{"a": map[string]any{"b": int64(1)}, "c": map[string]any{"b": int64(1)}}},
		"an alias as a key":              {"a: &x k\n*x : 1", map[string]any{"a": "k", "k": int64(1)}},
		"a merge key":                    {"a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}", map[string]any{"a": map[string]any{"b": int64(1), "c": int64(2)}, "d": map[string]any{"b": int64(3), "c": int64(2)}}},
		"a merge key with a list":        {"d: {<<: [{b: 1}, {b: 2, c: 2}]}", map[string]any{"d": map[string]any{"b": int64(1), "c": int64(2)}}},
		"a quoted merge key is a key":    {`"<<": 1`, map[string]any{"<<": int64(1)}},
		"a lone scalar":                  {"7", int64(7)},
		"a lone JSON text":               {`"x"`, "x"},
		"flow YAML that begins as JSON":  {"{\"a\": b,}", map[string]any{"a": "b"}},
		"JSON with an escaped surrogate": {`["\ud83d\ude00"]`, []any{"😀"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, parse(t, "x.yaml", tc.text).Value); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

// What kubectl would send for a file is what the file means. Both are given the
// same text, each scalar as a value and as a key.
func TestScalarsAreThoseOfTheAPIServer(t *testing.T) {
	scalars := []string{
		"017", "0o17", "0x1F", "1_000", "1.0", "1e3", "12e03", "08", "1_0.5", "0x_1", "-0x1F", "0b-1", "+5", ".5", "5.", "-0", "-0.0",
		"18446744073709551615", "18446744073709551616", "0x8000000000000000", "-9223372036854775809", "9007199254740993.0",
		"2001-12-14", "1:30", "12:30:45", "1e400", "=", "tRue", "TRUE", "Null", "!!str 5", "!!float 5", "!!int '5'", "x y", "'yes'",
	}
	for _, scalar := range scalars {
		for _, text := range []string{"a: " + scalar, "? " + scalar + "\n: a"} {
			want, err := yaml.YAMLToJSON([]byte(text))
			if err != nil || strings.HasPrefix(text, "?") && strings.ContainsAny(string(want), "+-") {
				continue // some are no keys there, and others are cut to single precision
			}
			tree, err := jsonvalue.Decode(want)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if got := parse(t, "x.yaml", text).Value; !jsonvalue.Equal(tree, got) {
				t.Errorf("%q is %v, want %s", text, got, want)
			}
		}
	}
}

func TestPositions(t *testing.T) {
	for format, tc := range map[string]struct{ name, text string }{
		"YAML": {"x.yaml", "# c\nnodes:\n- id: é\n  config: {inputs: [1, {ü: 2, b: 3}]}\n- x\n"},
		"JSON": {"x.json", "\n{\"nodes\":\n[{\"id\": \"é\",\n  \"config\": {\"inputs\": [1, {\"ü\": 2, \"b\": 3}]}},\n\"x\"]}"},
	} {
		doc := parse(t, tc.name, tc.text)
		want := map[string][]string{
			"YAML": {"2:1", "3:1", "3:3", "4:11", "4:24", "4:34", "5:3", "4:11", "2:1"},
			"JSON": {"2:1", "3:1", "3:2", "4:13", "4:28", "4:42", "5:1", "4:13", "2:1"},
		}[format]
		for i, path := range [][]any{
			{},
			{"nodes"},
			{"nodes", 0},
			{"nodes", 0, "config"},
			{"nodes", 0, "config", "inputs", 1},
			{"nodes", 0, "config", "inputs", 1, "b"},
			{"nodes", 1},
			{"nodes", 0, "config", "gone", "deeper"},
			{7},
		} {
			if got := doc.Position(path...).String(); got != want[i] {
				t.Errorf("%s: position of %v is %s, want %s", format, path, got, want[i])
			}
		}
	}
}

func TestPartOfADocument(t *testing.T) {
	doc := parse(t, "x.yaml", "spec:\n  list:\n  - {a: 1}\n")
	part, ok := doc.Part("spec", "list", 0)
	if !ok || part.Name != "x.yaml" || part.Position("a").String() != "3:9" {
		t.Errorf("Part() = %+v, %v", part, ok)
	}
	if diff := cmp.Diff(map[string]any{"a": int64(1)}, part.Value); diff != "" {
		t.Errorf("part (-want +got):\n%s", diff)
	}
	for _, path := range [][]any{{"gone"}, {"spec", 0}, {"spec", "list", 1}, {"spec", "list", -1}, {"spec", "list", 0, "a", "b"}} {
		if _, ok := doc.Part(path...); ok {
			t.Errorf("there is a part at %v", path)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ name, text, want string }{
		"an empty file":                  {"x.yaml", " \n\t\n", "x.yaml: the file is empty"},
		"a file with only a comment":     {"x.yaml", "# nothing\n", "x.yaml: the file is empty"},
		"bytes that are no text":         {"x.yaml", "a: 1\nb: \xff", "x.yaml:2:4: this is not valid UTF-8"},
		"a key twice in YAML":            {"x.yaml", "a: 1\nb: 2\na: 3", `x.yaml:3:1: the key "a" stands twice in this object`},
		"a key twice in JSON":            {"x.json", "{\"é\": 1,\n \"é\": 3}", `x.json:2:2: the key "é" stands twice in this object`},
		"a key twice in flow style":      {"x.yaml", "{a: 1, a: 3}", `x.yaml:1:8: the key "a" stands twice in this object`},
		"a key twice, once as a number":  {"x.yaml", "1: a\n'1': b", `x.yaml:2:1: the key "1" stands twice in this object`},
		"a file of empty documents":      {"x.yaml", "---\n---\n# nothing\n", "x.yaml: the file is empty"},
		"two documents":                  {"x.yaml", "a: 1\n---\nb: 2", "x.yaml:3:1: the file holds more than one document"},
		"two with an empty one between":  {"x.yaml", "a: 1\n---\n---\nb: 2", "x.yaml:4:1: the file holds more than one document"},
		"a null behind a document":       {"x.yaml", "a: 1\n---\nnull", "x.yaml:3:1: the file holds more than one document"},
		"an error behind a document":     {"x.yaml", "a: 1\n---\n[", "x.yaml:4: did not find expected node content"},
		"two JSON values":                {"x.json", "{} {}", "x.json:1:4: there is more data after the value"},
		"JSON that ends":                 {"x.json", "{\"a\":\n", "x.json:2:1: the data ends too early"},
		"JSON with a misspelt word":      {"x.json", "{\"b\": 1,\n\"a\": trux}", "x.json:2:6: invalid character 'x' in literal true (expecting 'e')"},
		"JSON with a stray comma":        {"x.json", "[1,]", "x.json:1:4: invalid character ']' looking for beginning of value"},
		"YAML in a JSON file":            {"x.json", "a: 1", "x.json:1:1: invalid character 'a' looking for beginning of value"},
		"YAML that does not parse":       {"x.yaml", "a: [1\nb: 2", "x.yaml:2: did not find expected ',' or ']'"},
		"YAML that cannot be scanned":    {"x.yaml", "a: 1\nb: @", "x.yaml:2: found character that cannot start any token"},
		"an unknown anchor":              {"x.yaml", "a: *b", "x.yaml: unknown anchor 'b' referenced"},
		"an anchor inside itself":        {"x.yaml", "a: &x [*x]", `x.yaml:1:8: the anchor "x" contains itself`},
		"a number beyond the doubles":    {"x.json", `{"id": 1e400}`, `x.json:1:8: the number "1e400" is beyond all doubles`},
		"half a surrogate pair":          {"x.json", `{"a": "\ud83d"}`, `x.json:1:7: the text "\"\\ud83d\"" is not valid Unicode`},
		"half a surrogate pair as a key": {"x.json", `{"\ud83d": 1}`, `x.json:1:2: the text "\"\\ud83d\"" is not valid Unicode`},
		"an infinite number":             {"x.yaml", "a: .inf", `x.yaml:1:4: ".inf" is no number of JSON`},
		"no number at all":               {"x.yaml", "a: .nan", `x.yaml:1:4: ".nan" is no number of JSON`},
		"a tag of somebody":              {"x.yaml", "a: !mine x", `x.yaml:1:4: the tag "!mine" is not supported`},
		"a list with a tag":              {"x.yaml", "a: !mine [x]", `x.yaml:1:4: the tag "!mine" is not supported`},
		"an object with a tag":           {"x.yaml", "a: !!set {x}", `x.yaml:1:4: the tag "!!set" is not supported`},
		"null that is not null":          {"x.yaml", "a: !!null x", `x.yaml:1:4: "x" is not null`},
		"a boolean that is none":         {"x.yaml", "a: !!bool x", `x.yaml:1:4: "x" is not a boolean`},
		"a number that is none":          {"x.yaml", "a: !!int x", `x.yaml:1:4: "x" is not a number`},
		"binary that is no text":         {"x.yaml", "a: !!binary /w==", `x.yaml:1:4: the text "�" is not valid Unicode`},
		"binary that is no base64":       {"x.yaml", "a: !!binary '*'", "x.yaml:1:4: this is not base64"},
		"a list as a key":                {"x.yaml", "[1]: a", "x.yaml:1:1: a key must be text, this is a list"},
		"an object as a key":             {"x.yaml", "? {a: 1}\n: a", "x.yaml:1:3: a key must be text, this is an object"},
		"null as a key":                  {"x.yaml", "~: a", "x.yaml:1:1: a key must be text, this is null"},
		"a merge key with text":          {"x.yaml", "a: {<<: x}", "x.yaml:1:9: a merge key takes objects, this is text"},
		"a merge key twice":              {"x.yaml", "a: &x {b: 1, b: 2}", `x.yaml:1:14: the key "b" stands twice in this object`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := source.Parse(tc.name, []byte(tc.text))
			if _, ok := errors.AsType[*source.Error](err); !ok {
				t.Fatalf("Parse() = %v, want a *source.Error", err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// Hostile files are refused by their size, their values, their nesting or what
// their aliases make of them, whatever else they are.
func TestBounds(t *testing.T) {
	lines := []string{"a: &a [x,x,x,x,x,x,x,x,x]"}
	for next := 'b'; next <= 'i'; next++ {
		alias := fmt.Sprintf("*%c", next-1)
		lines = append(lines, fmt.Sprintf("%c: &%c [%s]", next, next, strings.Repeat(alias+",", 8)+alias))
	}
	bomb := strings.Join(lines, "\n")
	for name, tc := range map[string]struct{ name, text, want string }{
		"a file over the limit":   {"x.json", strings.Repeat(" ", source.MaxBytes+1), "over 8 MiB"},
		"JSON nested deep":        {"x.json", strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "nest deeper than 1000"},
		"JSON objects deep":       {"x.json", strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), "nest deeper than 1000"},
		"JSON that only opens":    {"x.json", strings.Repeat("[", 5<<20), "nest deeper than 1000"},
		"YAML lists deep":         {"x.yaml", strings.Repeat("- ", 10_000), "nest deeper than 1000"},
		"YAML flow deep":          {"x.yaml", strings.Repeat("[", 10_000), "nest deeper than 1000"},
		"YAML deeper than it can": {"x.yaml", strings.Repeat("{a: ", 20_000), "depth"},
		"JSON of many values":     {"x.json", "[" + strings.Repeat("1,", source.MaxValues) + "1]", "over 1000000 values"},
		"YAML of many values":     {"x.yaml", strings.Repeat("- \n", source.MaxValues/2+1), "over 1000000 values"},
		"a bomb of aliases":       {"x.yaml", bomb, "aliases written out"},
		"a long text many times":  {"x.yaml", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 10) + "]", "aliases written out"},
		"a long key many times":   {"x.yaml", "a: &a {" + strings.Repeat("x", 900) + ": 1}\nb: [" + strings.Repeat("*a,", 10_000) + "]", "aliases written out"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := source.Parse(tc.name, []byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse() = %v, want %q in it", err, tc.want)
			}
		})
	}
	deep := strings.Repeat("[", source.MaxDepth) + strings.Repeat("]", source.MaxDepth)
	for _, name := range []string{"x.json", "x.yaml"} {
		parse(t, name, deep)
	}
	parse(t, "x.json", `["`+strings.Repeat("x", 5<<20)+`"]`)
}

func TestWarnings(t *testing.T) {
	doc := parse(t, "x.yaml", "position: {x: 1, y: 2}\nlabel: \"yes\"\nother: 'no'\nmore: Off\n")
	want := []string{"x.yaml:1:18: y is text here but a boolean for kubectl, which reads YAML 1.1: quote it (and 1 more)"}
	if diff := cmp.Diff(want, doc.Warnings); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	for _, text := range []string{"a: yes", "on: 1"} {
		if len(parse(t, "x.yaml", text).Warnings) != 1 {
			t.Errorf("%q warns of nothing", text)
		}
	}
	for _, text := range []string{"a: !!str yes", "a: yEs", "a: 'on'", `{"on": "yes"}`, "a: [true, null, nope]"} {
		if warnings := parse(t, "x.yaml", text).Warnings; len(warnings) != 0 {
			t.Errorf("%q warns: %v", text, warnings)
		}
	}
}

func TestObject(t *testing.T) {
	if _, err := parse(t, "x.yaml", "a: 1").Object(); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"[]": "a list", "null": "null", "true": "a boolean", "x": "text", "1": "a number", "1.5": "a number",
	} {
		_, err := parse(t, "x.yaml", text).Object()
		if err == nil || err.Error() != "x.yaml:1:1: an object is expected, this is "+want {
			t.Errorf("Object() of %s: %v", text, err)
		}
	}
	if got := source.Describe(map[string]any{}); got != "an object" {
		t.Errorf("Describe({}) = %q", got)
	}
}

func TestLoader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(path, []byte("a: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	loader := source.Loader{Stdin: strings.NewReader("b: 2")}
	doc, err := loader.Load(path)
	if err != nil || doc.Name != path {
		t.Errorf("Load(%q) = %+v, %v", path, doc, err)
	}
	doc, err = loader.Load("-")
	if err != nil || doc.Name != source.Stdin || !jsonvalue.Equal(doc.Value, map[string]any{"b": 2}) {
		t.Errorf("Load(-) = %+v, %v", doc, err)
	}
	if _, err = loader.Load("-"); !errors.Is(err, source.ErrStdinTaken) {
		t.Errorf("the second Load(-): %v", err)
	}
	if _, err = loader.Load(path + ".gone"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err = loader.Load(""); err == nil {
		t.Error("a file without a name was read")
	}
	if _, err = loader.Load(filepath.Dir(path)); err == nil {
		t.Error("a directory was read")
	}
	broken := source.Loader{Stdin: iotest.ErrReader(iotest.ErrTimeout)}
	if _, err = broken.Load("-"); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a broken standard input: %v", err)
	}
}
