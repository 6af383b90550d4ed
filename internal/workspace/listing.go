package workspace

import (
	"errors"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// zeroID stands for what is not there.
const zeroID = "0000000000000000000000000000000000000000"

// A Listing is all the refs a remote has shown.
type Listing struct {
	// refs by name. An annotated tag is there by its own id.
	refs map[string]string
	// peeled are the commits of annotated tags.
	peeled map[string]string
	// twice are the refs that were listed more than once.
	twice map[string]bool
	// head is the branch that HEAD names.
	head         string
	capabilities map[string]string
}

// readListing reads the refs a service shows. The list is complete when the mark of its end was read.
func readListing(body io.Reader) (*Listing, error) {
	l := &Listing{
		refs: map[string]string{}, peeled: map[string]string{}, twice: map[string]bool{}, capabilities: map[string]string{},
	}
	packets := pktline.NewScanner(body)
	isFirst := true
	for packets.Scan() {
		line := strings.TrimSuffix(string(packets.Bytes()), "\n")
		switch {
		case line == "" && isFirst:
			// A list without anything is that of a repository without anything.
			return l, nil
		case line == "":
			return l, l.check()
		case isFirst && strings.HasPrefix(line, "version "):
			continue
		}
		if err := l.add(line, isFirst); err != nil {
			return nil, err
		}
		isFirst = false
	}
	return nil, listingError(packets.Err())
}

func listingError(err error) error {
	var refused *pktline.ErrorLine
	switch {
	case errors.As(err, &refused):
		return unavailable(effect.ReasonServer, "the server refused to list refs")
	case errors.Is(err, pktline.ErrInvalidPktLen):
		return unavailable(effect.ReasonUnreadable, "the list of refs is malformed")
	case errors.Is(err, errLimit):
		return unavailable(effect.ReasonIncomplete, "the list of refs is too long")
	}
	return unavailable(effect.ReasonIncomplete, "the list of refs ended early")
}

// add reads one line: an id and a name; the first one also has what the server can do.
func (l *Listing) add(line string, isFirst bool) error {
	if isFirst {
		var capabilities string
		line, capabilities, _ = strings.Cut(line, "\x00")
		l.learn(capabilities)
	}
	if strings.HasPrefix(line, "shallow ") {
		return nil
	}
	id, name, found := strings.Cut(line, " ")
	if format := l.capabilities["object-format"]; format != "" && format != ObjectFormat {
		return failure(CodeObjectFormatUnsupported, "the repository has object ids of another format than %s", ObjectFormat)
	}
	if !found || !IsCommitID(id) || name == "" {
		return unavailable(effect.ReasonUnreadable, "the list of refs is malformed")
	}
	if tag, isPeeled := strings.CutSuffix(name, "^{}"); isPeeled {
		// Of a repository without refs the first line is about none.
		if id != zeroID {
			l.peeled[tag] = id
		}
		return nil
	}
	if _, found := l.refs[name]; found {
		l.twice[name] = true
	}
	l.refs[name] = id
	return nil
}

func (l *Listing) learn(capabilities string) {
	for capability := range strings.FieldsSeq(capabilities) {
		name, value, _ := strings.Cut(capability, "=")
		if name == "symref" {
			if head, found := strings.CutPrefix(value, "HEAD:"); found {
				l.head = head
			}
			continue
		}
		l.capabilities[name] = value
	}
}

// check refuses a list that contradicts itself about HEAD.
func (l *Listing) check() error {
	if l.head != "" && l.refs["HEAD"] != "" && l.refs[l.head] != "" && l.refs["HEAD"] != l.refs[l.head] {
		return unavailable(effect.ReasonIncomplete, "refs changed while they were listed")
	}
	return nil
}

// can tells whether the server can do something.
func (l *Listing) can(capability string) bool {
	_, found := l.capabilities[capability]
	return found
}

// Branch is the commit of a branch; empty: there is no such branch.
func (l *Listing) Branch(name string) string {
	return l.refs[headsPrefix+name]
}

// IsAmbiguous tells whether a ref was listed more than once.
func (l *Listing) IsAmbiguous(ref string) bool {
	return l.twice[ref]
}

// DefaultBranch is the branch that the remote's HEAD names, if that has a commit.
func (l *Listing) DefaultBranch() (string, bool) {
	branch, found := strings.CutPrefix(l.head, headsPrefix)
	return branch, found && l.refs[l.head] != ""
}

// A Resolved base is the commit to pin, and the branch it was, if it was one.
type Resolved struct {
	Commit string
	Branch string
}

// Resolve finds what input `base` means: a branch, a tag, a whole commit id or, if it is empty, the default branch. Full ref
// names are taken as well. The failures are REF_NOT_FOUND and NO_DEFAULT_BRANCH. A commit id is not looked for among the
// refs, so it may not be there.
func (l *Listing) Resolve(base string) (Resolved, error) {
	if base == "" {
		branch, found := l.DefaultBranch()
		if !found {
			return Resolved{}, failure(CodeNoDefaultBranch, "the repository has no default branch with a commit")
		}
		return Resolved{Commit: l.Branch(branch), Branch: branch}, nil
	}
	branch := strings.TrimPrefix(base, headsPrefix)
	if commit := l.Branch(branch); commit != "" {
		return l.once(headsPrefix+branch, Resolved{Commit: commit, Branch: branch})
	}
	tag := tagsPrefix + strings.TrimPrefix(base, tagsPrefix)
	if commit := l.tag(tag); commit != "" {
		return l.once(tag, Resolved{Commit: commit})
	}
	if IsCommitID(base) && base != zeroID {
		return Resolved{Commit: base}, nil
	}
	return Resolved{}, failure(CodeRefNotFound, "the repository has no branch and no tag of the name in input base")
}

func (l *Listing) once(ref string, resolved Resolved) (Resolved, error) {
	if l.twice[ref] {
		return Resolved{}, failure(effect.CodeAmbiguous, "the ref of input base was listed more than once")
	}
	return resolved, nil
}

func (l *Listing) tag(ref string) string {
	if commit := l.peeled[ref]; commit != "" {
		return commit
	}
	return l.refs[ref]
}

// Start finds the commit a worktree's branch starts at: where the remote has it, else what base means, else the pinned
// commit. The failures are those of Resolve.
func (l *Listing) Start(branch, base, pinned string) (string, error) {
	if commit := l.Branch(branch); commit != "" {
		resolved, err := l.once(headsPrefix+branch, Resolved{Commit: commit})
		return resolved.Commit, err
	}
	if base == "" {
		return pinned, nil
	}
	resolved, err := l.Resolve(base)
	return resolved.Commit, err
}
