package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// A Console is a terminal with a person before it who is asked for lines.
type Console struct {
	keyboard *os.File
	screen   io.Writer
	lines    *bufio.Reader
}

// NewConsole asks on a screen and reads from a keyboard, if both are terminals.
func NewConsole(keyboard io.Reader, screen io.Writer) (console *Console, isThere bool) {
	file, isFile := keyboard.(*os.File)
	if !isFile || !IsTerminal(file) || !IsTerminal(screen) {
		return nil, false
	}
	return &Console{keyboard: file, screen: screen, lines: bufio.NewReader(file)}, true
}

// Say writes a line.
func (c *Console) Say(text string) {
	_, _ = fmt.Fprintln(c.screen, text)
}

// Line reads a line, without its end. The error is [io.EOF] after the last one.
func (c *Console) Line(ctx context.Context, prompt string) (string, error) {
	_, _ = io.WriteString(c.screen, prompt)
	text, err := await(ctx, func() (string, error) { return c.lines.ReadString('\n') })
	if errors.Is(err, io.EOF) && text != "" {
		err = nil
	}
	if err != nil {
		c.Say("")
	}
	return strings.TrimRight(text, "\r\n"), err
}

// Secret reads a line that the terminal does not show.
func (c *Console) Secret(ctx context.Context, prompt string) (string, error) {
	descriptor := int(c.keyboard.Fd())
	before, err := term.GetState(descriptor)
	if err != nil {
		return "", fmt.Errorf("look at terminal: %w", err)
	}
	// Whoever gives up while it reads would leave a terminal that shows nothing.
	defer func() { _ = term.Restore(descriptor, before) }()
	_, _ = io.WriteString(c.screen, prompt)
	text, err := await(ctx, func() (string, error) {
		data, err := term.ReadPassword(descriptor)
		return string(data), err
	})
	c.Say("")
	return text, err
}

// await reads until the context ends. A read of a terminal cannot be taken back, so
// it is left to itself: the program is about to end.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type outcome struct {
		text string
		err  error
	}
	got := make(chan outcome, 1)
	go func() {
		text, err := read()
		got <- outcome{text, err}
	}()
	select {
	case o := <-got:
		return o.text, o.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
