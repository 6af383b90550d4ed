// Package review shows workflow documents to somebody who has to judge them: what
// tells two of them apart, in words, and either of them, or both at once, as a
// drawing.
//
// It decides nothing about documents, and takes those that are invalid.
package review
