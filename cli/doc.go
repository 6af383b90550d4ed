// Package cli is the command line of workflow documents: it reads files, asks the
// packages that judge, change and play workflows, and tells what they say, to a
// person in words and to a program in JSON.
//
// Exit codes are part of that. A question that was answered well is 0, one that
// was answered and went against the files (an invalid workflow, a refused change
// set, an answer that does not fit its form) is 1, and one that could not be put
// (an unknown flag, a file that is missing or cannot be read) is 2. What is
// asked for goes to standard output, all else to standard error.
//
// Nothing here decides anything about workflows, and nothing leaves the machine.
package cli
