package workspace

import (
	"errors"
	"fmt"

	"github.com/apitomy/axiom-operator/internal/effect"
)

// Codes of failures.
const (
	CodeRefNotFound        = "REF_NOT_FOUND"
	CodeNoDefaultBranch    = "NO_DEFAULT_BRANCH"
	CodeBranchInvalid      = "BRANCH_INVALID"
	CodeBranchInUse        = "BRANCH_IN_USE"
	CodeLocalChanges       = "LOCAL_CHANGES"
	CodeTooManyPaths       = "TOO_MANY_PATHS"
	CodeFileNotFound       = "FILE_NOT_FOUND"
	CodeFileNotText        = "FILE_NOT_TEXT"
	CodeFileTooLarge       = "FILE_TOO_LARGE"
	CodePathThroughLink    = "PATH_THROUGH_LINK"
	CodePathIsLink         = "PATH_IS_LINK"
	CodePathInSubmodule    = "PATH_IN_SUBMODULE"
	CodePathspecUnmatched  = "PATHSPEC_UNMATCHED"
	CodePathspecIgnored    = "PATHSPEC_IGNORED"
	CodePathspecInvalid    = "PATHSPEC_INVALID"
	CodeEmptyIndex         = "EMPTY_INDEX"
	CodeMessageEmpty       = "MESSAGE_EMPTY"
	CodeFragmentPath       = "FRAGMENT_PATH"
	CodeRepositoryTooLarge = "REPOSITORY_TOO_LARGE"
	// CodeWorkspaceTooLarge is that of a run whose own objects exceed MaxPacks.
	CodeWorkspaceTooLarge = "WORKSPACE_TOO_LARGE"
	// CodeObjectFormatUnsupported is that of a repository that has ids of another kind.
	CodeObjectFormatUnsupported = "OBJECT_FORMAT_UNSUPPORTED"
)

func failure(code, format string, args ...any) *effect.Failure {
	return &effect.Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// about says of a failure which of the values of an input it is about.
func about(input string, i int, err error) error {
	if final, ok := errors.AsType[*effect.Failure](err); ok {
		return failure(final.Code, "%s[%d]: %s", input, i, final.Message)
	}
	return err
}
