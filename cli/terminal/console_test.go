package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/apitomy/axiom-operator/cli/terminal"
)

// pair is a terminal, from the side of the person and from that of the program.
func pair(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	descriptor := int(person.Fd())
	if err := unix.IoctlSetPointerInt(descriptor, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(descriptor, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// sees reads what is on the screen until it ends so.
func sees(t *testing.T, person *os.File, end string) string {
	t.Helper()
	var seen bytes.Buffer
	one := make([]byte, 1)
	for !strings.HasSuffix(seen.String(), end) {
		if _, err := person.Read(one); err != nil {
			t.Fatalf("%v after %q", err, seen.String())
		}
		seen.Write(one)
	}
	return seen.String()
}

func TestConsoleReadsLines(t *testing.T) {
	person, program := pair(t)
	console, isThere := terminal.NewConsole(program, program)
	if !isThere {
		t.Fatal("a terminal is no console")
	}
	if _, err := io.WriteString(person, "first\nlast\x04\x04\x04"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first", "last"} {
		if got, err := console.Line(t.Context(), "> "); got != want || err != nil {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if got, err := console.Line(t.Context(), "> "); !errors.Is(err, io.EOF) {
		t.Errorf("got %q, %v behind the last line", got, err)
	}
}

func TestConsoleDoesNotShowSecrets(t *testing.T) {
	person, program := pair(t)
	console, _ := terminal.NewConsole(program, program)
	typed := make(chan error, 1)
	screen := make(chan string, 1)
	go func() {
		one := make([]byte, 1)
		var seen []byte
		for !bytes.HasSuffix(seen, []byte("word> ")) {
			if _, err := person.Read(one); err != nil {
				break
			}
			seen = append(seen, one...)
		}
		for isShown(program) { // the prompt comes before the terminal is quiet
			time.Sleep(time.Millisecond)
		}
		_, err := io.WriteString(person, "sesame\n")
		typed <- err
		screen <- string(seen)
	}()
	got, err := console.Secret(t.Context(), "word> ")
	if failed := errors.Join(err, <-typed); failed != nil || got != "sesame" {
		t.Errorf("got %q, %v", got, failed)
	}
	console.Say("done")
	if seen := <-screen + sees(t, person, "done\r\n"); strings.Contains(seen, "sesame") {
		t.Errorf("it shows %q", seen)
	}
	if !isShown(program) {
		t.Error("the terminal shows nothing afterwards")
	}
}

func isShown(file *os.File) bool {
	settings, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil && settings.Lflag&unix.ECHO != 0
}

func TestConsoleIsLeft(t *testing.T) {
	_, program := pair(t)
	console, _ := terminal.NewConsole(program, program)
	left := errors.New("left")
	ctx, leave := context.WithCancelCause(t.Context())
	leave(left)
	if _, err := console.Line(ctx, "> "); !errors.Is(err, left) {
		t.Errorf("got %v of a line", err)
	}
	if _, err := console.Secret(ctx, "> "); !errors.Is(err, left) {
		t.Errorf("got %v of a secret", err)
	}
	if !isShown(program) || !term.IsTerminal(int(program.Fd())) {
		t.Error("the terminal shows nothing afterwards")
	}
}

func TestNoConsole(t *testing.T) {
	_, program := pair(t)
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nothing.Close() }()
	for name, streams := range map[string][2]any{
		"no keyboard": {strings.NewReader(""), program}, "no screen": {program, io.Discard}, "nothing to read": {nothing, program},
	} {
		keyboard, _ := streams[0].(io.Reader)
		screen, _ := streams[1].(io.Writer)
		if _, isThere := terminal.NewConsole(keyboard, screen); isThere {
			t.Errorf("%s is a console", name)
		}
	}
}
