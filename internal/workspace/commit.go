package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// identity of author and committer of what a run commits.
const identity = "Axiom Workflow <workflow@axiom.apitomy.io>"

// A Commit says what was committed.
type Commit struct {
	Commit string `json:"commit"`
	Parent string `json:"parent"`
	Tree   string `json:"tree"`
	// Second since 1970 that it was committed at.
	Second int64 `json:"second"`
	// MessageDigest and MessageSize are those of the message as it is in the commit.
	MessageDigest string `json:"messageDigest"`
	MessageSize   int    `json:"messageSize"`
}

// Commit commits exactly what is staged on a branch. Its id follows from the worktree, the message and the second alone.
// The failures are EMPTY_INDEX, decided first, and MESSAGE_EMPTY.
func (o *Objects) Commit(w Worktree, message string, second int64) (Worktree, Commit, error) {
	tree, err := o.CommitTree(w.Head)
	if err != nil {
		return w, Commit{}, err
	}
	if tree == w.IndexTree {
		return w, Commit{}, failure(CodeEmptyIndex, "nothing is staged")
	}
	message, err = normalizeMessage(message)
	if err != nil {
		return w, Commit{}, err
	}
	data := fmt.Sprintf("tree %s\nparent %s\nauthor %s %d +0000\ncommitter %s %d +0000\n\n%s",
		w.IndexTree, w.Head, identity, second, identity, second, message)
	id := o.write(plumbing.CommitObject, []byte(data))
	sum := sha256.Sum256([]byte(message))
	made := Commit{
		Commit: id.String(), Parent: w.Head, Tree: w.IndexTree, Second: second,
		MessageDigest: "sha256:" + hex.EncodeToString(sum[:]), MessageSize: len(message),
	}
	w.Head = made.Commit
	return w, made, nil
}

// normalizeMessage gives a message the line ends of Git, and one at its end.
func normalizeMessage(message string) (string, error) {
	message = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(message)
	message = strings.TrimRightFunc(message, unicode.IsSpace)
	switch {
	case message == "":
		return "", failure(CodeMessageEmpty, "input message has no text")
	case strings.Contains(message, "\x00"):
		// Git would end the message there.
		return "", failure(effect.CodeInputContract, "input message has a NUL character")
	}
	return message + "\n", nil
}

// errBrokenChain says that a head is not made of the run's own commits.
var errBrokenChain = fmt.Errorf("%w: the chain of a branch does not reach its start", ErrDamaged)

// IsAncestor tells whether a commit is a strict ancestor of the head on the run's own chain: from the head back to, and
// including, the commit the branch started at.
func (o *Objects) IsAncestor(w Worktree, ancestor string) (bool, error) {
	for at := w.Head; at != w.Start; {
		id, err := parseID(at)
		if err != nil {
			return false, err
		}
		c, err := o.commit(id)
		if err != nil {
			return false, err
		}
		if !o.isOwn(id) || len(c.parents) != 1 {
			return false, errBrokenChain
		}
		if at = c.parents[0].String(); at == ancestor {
			return true, nil
		}
	}
	return false, nil
}
