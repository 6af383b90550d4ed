// Package command is what the commands of axiom have in common, whatever they
// are about: the environment they run in, the shape of a command, the flag for
// the format of its answer, and the exit code.
//
// Exit codes are part of an answer. A question that was answered well is 0, one
// that was answered and went against the asker (an invalid workflow, a refused
// change set, a turn that failed) is 1, and one that could not be put (an unknown
// flag, a file that is missing, a cluster that does not answer) is 2. What is
// asked for goes to standard output, all else to standard error.
//
// The package knows nothing of what is asked.
package command
