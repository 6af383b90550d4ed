package fragment

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apitomy/axiom-operator/internal/workpath"
)

// Options are what the definition of an action says of fragments. They take away; they cannot add.
type Options struct {
	// Allow has the classes that may be carried out; nil: Read alone.
	Allow []string
	// Include and Exclude are patterns of the paths that may be named. Without Include all are.
	Include, Exclude []string
}

var errAllow = errors.New("allow must name one or both of read and write, each once")

// Check tells why the options are none. It repeats nothing of them.
func (o Options) Check() error {
	_, err := o.compile()
	return err
}

// Selects tells whether the options let a path be named, such as one that a glob finds. The options passed Check.
func (o Options) Selects(path string) bool {
	limits, err := o.compile()
	return err == nil && limits.selects(path)
}

// limits are options that can be asked.
type limits struct {
	allow            []string
	include, exclude []workpath.Pattern
}

func (o Options) compile() (limits, error) {
	allow := o.Allow
	if allow == nil {
		allow = []string{string(Read)}
	}
	if len(allow) == 0 {
		return limits{}, errAllow
	}
	for i, class := range allow {
		isKnown := class == string(Read) || class == string(Write)
		if !isKnown || slices.Contains(allow[:i], class) {
			return limits{}, errAllow
		}
	}
	include, err := workpath.NewPatterns(o.Include)
	if err != nil {
		return limits{}, fmt.Errorf("read paths to include: %w", err)
	}
	exclude, err := workpath.NewPatterns(o.Exclude)
	if err != nil {
		return limits{}, fmt.Errorf("read paths to exclude: %w", err)
	}
	return limits{allow: allow, include: include, exclude: exclude}, nil
}

func (l limits) selects(path string) bool {
	return workpath.Selects(l.include, l.exclude, path)
}

// classOf is the class that all entries have and that is allowed.
func (l limits) classOf(entries []entry) (Class, *Refusal) {
	first := classes[entries[0].kind]
	for i, e := range entries {
		class := classes[e.kind]
		if class != first || !slices.Contains(l.allow, string(class)) {
			return "", refuse(CodeClass, i)
		}
	}
	return first, nil
}
