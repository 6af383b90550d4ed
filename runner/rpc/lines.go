package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines reads lines of at most limit bytes without keeping longer ones in
// memory.
type lines struct {
	reader *bufio.Reader
	limit  int
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{reader: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line without its end, or tooLong for one over the
// limit, which is read past. A last line without an end counts. The error is
// io.EOF at the end, or that of the reader.
func (l *lines) next() (line []byte, tooLong bool, err error) {
	for {
		part, err := l.reader.ReadSlice('\n')
		if len(line)+len(part) > l.limit+1 {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && (tooLong || len(line) > 0):
			return line, tooLong, nil
		default:
			return nil, false, err
		}
	}
}
