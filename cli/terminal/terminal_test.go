package terminal_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/apitomy/axiom-operator/cli/terminal"
)

func TestPaint(t *testing.T) {
	if got := terminal.Colours().Paint(terminal.Red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("Paint() = %q", got)
	}
	if got := terminal.Colours().Paint(terminal.Red, ""); got != "" {
		t.Errorf("nothing in red is %q", got)
	}
	if got := (terminal.Palette{}).Paint(terminal.Red, "x"); got != "x" {
		t.Errorf("without colours it is %q", got)
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = reader.Close(), writer.Close() }()

	plain := func(string) string { return "" }
	if got := terminal.PaletteFor(file, plain).Paint(terminal.Bold, "x"); got != "x" {
		t.Errorf("in a file it is %q", got)
	}
	if got := terminal.PaletteFor(writer, plain).Paint(terminal.Bold, "x"); got != "x" {
		t.Errorf("in a pipe it is %q", got)
	}
	if got := terminal.PaletteFor(&bytes.Buffer{}, plain).Paint(terminal.Bold, "x"); got != "x" {
		t.Errorf("in a buffer it is %q", got)
	}

	device, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %v", err)
	}
	defer func() { _ = device.Close() }()
	for variables, want := range map[[2]string]string{
		{"", ""}:            "\x1b[1mx\x1b[0m",
		{"TERM", "xterm"}:   "\x1b[1mx\x1b[0m",
		{"TERM", "dumb"}:    "x",
		{"NO_COLOR", "1"}:   "x",
		{"NO_COLOR", "yes"}: "x",
	} {
		getenv := func(name string) string {
			if name == variables[0] {
				return variables[1]
			}
			return ""
		}
		if got := terminal.PaletteFor(device, getenv).Paint(terminal.Bold, "x"); got != want {
			t.Errorf("with %v it is %q, want %q", variables, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain → ü 😀":              "plain → ü 😀",
		"a\tb\nc\r\u2028":          "a b c  ",
		"\x1b[31mred\x1b[0m":       "�[31mred�[0m",
		"\a\u0000\u009b":           "���",
		"left \u202e to right":     "left � to right",
		"broken \xff utf-8":        "broken � utf-8",
		"replaced already: \ufffd": "replaced already: �",
	} {
		if got := terminal.Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
	}
}
