// Package cli is the command line of workflow documents: it reads files, asks the
// packages that judge, change and play workflows, and tells what they say, to a
// person in words and to a program in JSON.
//
// Nothing here decides anything about workflows, and nothing leaves the machine.
// Commands that need a cluster come from outside, as an [Extension].
package cli
