// Package internal_test holds the packages under internal to their division: those that decide, and those that talk to
// the world.
//
// What decides is pure. It gets the time, and everything else it depends on, as an argument, so that the same arguments
// give the same answer and a run can be replayed. The pure packages are listed here; what decides and is new belongs among
// them.
//
// Three things are checked. What a package imports itself: no network, no disk, no processes, no logger, no source of
// chance, and of other modules only those that are listed. What it imports by way of others: no Kubernetes, no network,
// no processes and no package of this module that is not pure. And what its source says: no clock, no timer and no
// context of its own. The standard library below these packages does have an os and a syscall, because fmt and the
// libraries of CEL and JSON Schema do, and CEL looks up time zones by name; that cannot be helped, so the direct imports
// are what is held against them.
package internal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/apitomy/axiom-operator/"

// pure are the packages that decide.
var pure = []string{
	"action", "capability", "changeset", "definition", "engine", "event", "expression", "form", "fragment", "frames",
	"isoduration", "journal", "jsonvalue", "markdown", "pattern", "placeholder", "prompt", "reply", "token", "workflow",
	"workpath", "yamlerror",
}

// announced are those that are pure as soon as they are there.
var announced = []string{}

// typed are those that are pure but for what their guests bring with them: the types of the API Kubernetes, the rules for
// secrets a reader of files.
var typed = []string{"continuity", "secretscan", "template"}

// guests are what pure packages may import of other modules, by package.
var guests = map[string][]string{
	"continuity": {module + "api/v1alpha1"},
	"definition": {"go.yaml.in/yaml/v3"},
	"expression": {"github.com/google/cel-go/"},
	"form":       {"github.com/santhosh-tekuri/jsonschema/v6"},
	"secretscan": {"github.com/spf13/viper", "github.com/zricethezav/gitleaks/v8/config"},
	"workpath":   {"github.com/bmatcuk/doublestar/v4"},
	"template":   {module + "api/v1alpha1"},
}

// worlds are the packages of the standard library that a pure package does not import, and all below them.
var worlds = []string{
	"archive", "crypto/rand", "crypto/tls", "database", "debug", "expvar", "io/fs", "io/ioutil", "log", "math/rand", "mime/multipart", "net", "os",
	"path/filepath", "plugin", "runtime", "syscall", "testing", "unsafe",
}

// harmless are those of them that are about text alone.
var harmless = []string{"net/url"}

// remote are what a pure package does not even import by way of others.
var remote = []string{"crypto/tls", "k8s.io", "net", "net/http", "os/exec", "plugin", "sigs.k8s.io"}

// clocks are the names of the standard library that give the time, wait for it or start without a caller's context.
var clocks = map[string][]string{
	"time": {
		"After", "AfterFunc", "LoadLocation", "Local", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until",
	},
	"context": {"Background", "TODO", "WithDeadline", "WithDeadlineCause", "WithTimeout", "WithTimeoutCause"},
}

func TestPurePackagesKnowNothingOfTheWorld(t *testing.T) {
	for _, name := range slices.Concat(pure, announced, typed) {
		t.Run(name, func(t *testing.T) {
			files := sources(t, name)
			if len(files) == 0 {
				if !slices.Contains(announced, name) {
					t.Error("there is no such package")
				}
				return
			}
			faults := faultsOf(t, name, files)
			if !slices.Contains(typed, name) {
				faults = append(faults, dependencyFaults(t, name)...)
			}
			for _, fault := range faults {
				t.Error(fault)
			}
		})
	}
}

// The scan has to find what it looks for.
func TestImpureSourceIsFound(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"the clock":              {`import "time"; var x = time.Now()`, "uses time.Now"},
		"the clock renamed":      {`import clock "time"; var x = clock.Now`, "uses time.Now"},
		"time gone by":           {`import "time"; func f(t time.Time) any { return time.Since(t) }`, "uses time.Since"},
		"a nap":                  {`import "time"; func f() { time.Sleep(time.Second) }`, "uses time.Sleep"},
		"a timer":                {`import "time"; func f() { <-time.After(1) }`, "uses time.After"},
		"the zone of a machine":  {`import "time"; var x = time.Local`, "uses time.Local"},
		"a context from nowhere": {`import "context"; var x = context.Background()`, "uses context.Background"},
		"a timeout":              {`import "context"; var f = context.WithTimeout`, "uses context.WithTimeout"},
		"a dot import":           {`import . "strings"`, `imports "strings" by a dot`},
		"the network":            {`import "net/http"`, `imports "net/http"`},
		"the disk":               {`import "os"`, `imports "os"`},
		"a logger":               {`import "log/slog"`, `imports "log/slog"`},
		"chance":                 {`import "math/rand/v2"`, `imports "math/rand/v2"`},
		"Kubernetes":             {`import "k8s.io/api/core/v1"`, `imports "k8s.io/api/core/v1"`},
		"somebody's library":     {`import "github.com/google/cel-go/cel"`, `imports "github.com/google/cel-go/cel"`},
		"a worldly neighbour":    {`import "` + module + `internal/content"`, `imports "` + module + `internal/content"`},
		"types of the API":       {`import "` + module + `api/v1alpha1"`, `imports "` + module + `api/v1alpha1"`},
		"a duration":             {`import "time"; var x = 3 * time.Second`, ""},
		"the parts of a URL":     {`import "net/url"; var x url.URL`, ""},
		"a variable named time":  {`func f(time struct{ Now int }) int { return time.Now }`, ""},
		"a pure neighbour":       {`import "` + module + `internal/jsonvalue"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x; "+tc.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(scan("workflow", file), "; ")
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("faults %q, want %q", got, tc.want)
			}
		})
	}
}

// sources are the Go files of a directory but for tests.
func sources(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
}

func faultsOf(t *testing.T, name string, files []string) []string {
	t.Helper()
	var faults []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range scan(name, file) {
			faults = append(faults, path+" "+fault)
		}
	}
	return faults
}

// scan finds what a file of a pure package must not have.
func scan(name string, file *ast.File) []string {
	var faults []string
	imported := map[string]string{} // paths of imports by their name in the file
	for _, spec := range file.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		local := path[strings.LastIndexByte(path, '/')+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			faults = append(faults, fmt.Sprintf("imports %q by a dot", path))
		}
		if !mayImport(name, path) {
			faults = append(faults, fmt.Sprintf("imports %q", path))
		}
		imported[local] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// An identifier that is declared in the file is no package.
		if x, ok := selector.X.(*ast.Ident); ok && x.Obj == nil && slices.Contains(clocks[imported[x.Name]], selector.Sel.Name) {
			faults = append(faults, fmt.Sprintf("uses %s.%s", imported[x.Name], selector.Sel.Name))
		}
		return true
	})
	return faults
}

func mayImport(name, path string) bool {
	if slices.ContainsFunc(guests[name], func(guest string) bool { return strings.HasPrefix(path, guest) }) {
		return true
	}
	if neighbour, ok := strings.CutPrefix(path, module); ok {
		return isPure(neighbour)
	}
	isStandard := !strings.Contains(strings.Split(path, "/")[0], ".")
	return isStandard && (!isBelow(path, worlds) || slices.Contains(harmless, path))
}

// isBelow tells whether a path is one of these or below one of them.
func isBelow(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return path == root || strings.HasPrefix(path, root+"/") })
}

func TestImpureDependenciesAreFound(t *testing.T) {
	found := dependencyFaults(t, "content")
	for _, want := range []string{"depends on net/http", "depends on k8s.io/api/core/v1", "depends on " + module + "api/v1alpha1"} {
		if !slices.Contains(found, want) {
			t.Errorf("did not find that content %s", want)
		}
	}
}

// dependencyFaults finds what a pure package must not be built from.
func dependencyFaults(t *testing.T, name string) []string {
	t.Helper()
	var faults []string
	for _, dep := range dependencies(t, name) {
		neighbour, isNeighbour := strings.CutPrefix(dep.ImportPath, module)
		isWorldly := isNeighbour && !isPure(neighbour) || !dep.Standard && isBelow(dep.ImportPath, remote)
		if isWorldly || slices.Contains(remote, dep.ImportPath) {
			faults = append(faults, "depends on "+dep.ImportPath)
		}
	}
	return faults
}

// isPure tells by the path of a package within the module.
func isPure(path string) bool {
	name, isInternal := strings.CutPrefix(path, "internal/")
	return isInternal && (slices.Contains(pure, name) || slices.Contains(announced, name))
}

// A dependency is a package that another one is built from.
type dependency struct {
	ImportPath string
	Standard   bool
}

func dependencies(t *testing.T, name string) []dependency {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard", "./"+name).Output()
	if err != nil {
		t.Fatalf("list dependencies: %v", err)
	}
	var deps []dependency
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var dep dependency
		if err := decoder.Decode(&dep); errors.Is(err, io.EOF) {
			return deps
		} else if err != nil {
			t.Fatal(err)
		}
		deps = append(deps, dep)
	}
}
