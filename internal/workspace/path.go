package workspace

import "github.com/apitomy/axiom-operator/internal/workpath"

// checkPath fails with PATH_INVALID.
func checkPath(path string) error {
	if err := workpath.Check(path); err != nil {
		return failure(workpath.CodeInvalid, "the path is none that a worktree may have")
	}
	return nil
}
