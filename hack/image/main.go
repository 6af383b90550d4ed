// Command image packs static programs into a container image without a container engine.
//
// It decides the layout that the images of this project share (a non-root user, /tmp, a
// home) and writes a docker-archive that `docker load`, `ctr images import` and `kind load
// image-archive` read. The same inputs give the same bytes on every machine. It knows
// nothing of what the programs do or where the image goes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

const usage = `usage: image -reference NAME:TAG -output FILE [flags]

Packs files into an image and writes it as a docker-archive; a file that already
holds the same image is left alone.

`

func run(args []string, stdout, stderr io.Writer) error {
	spec := Spec{Architecture: runtime.GOARCH}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	output := flags.String("output", "", "archive to write")
	flags.StringVar(&spec.Reference, "reference", "", "name and tag of the image")
	flags.Func("program", "PATH=SOURCE: a static program and its place in the image (repeatable)", pairInto(&spec.Programs))
	flags.Func("data", "PATH=SOURCE: any other file, readable by everyone (repeatable)", pairInto(&spec.Data))
	flags.Func("link", "PATH=TARGET: a symbolic link (repeatable)", pairInto(&spec.Links))
	flags.Func("entrypoint", "one word of the command the image runs (repeatable)", func(word string) error {
		spec.Entrypoint = append(spec.Entrypoint, word)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return errors.Join(err, errUsage)
	}
	if *output == "" || spec.Reference == "" || flags.NArg() > 0 {
		flags.Usage()
		return errUsage
	}
	return pack(spec, *output, stdout)
}

func pack(spec Spec, output string, stdout io.Writer) error {
	img, err := Build(spec)
	if err != nil {
		return fmt.Errorf("build %s: %w", spec.Reference, err)
	}
	written, err := WriteIfChanged(output, spec.Reference, img)
	if err != nil {
		return fmt.Errorf("write %s: %w", output, err)
	}
	verdict := "unchanged"
	if written {
		verdict = "written"
	}
	_, err = fmt.Fprintf(stdout, "%s\t%s\t%s\n", spec.Reference, output, verdict)
	return err
}

// pairInto parses LEFT=RIGHT into list; an absolute path in the image is on the left.
func pairInto(list *[]Entry) func(string) error {
	return func(text string) error {
		path, source, found := strings.Cut(text, "=")
		if !found || !strings.HasPrefix(path, "/") || source == "" {
			return fmt.Errorf("want /PATH=VALUE, got %q", text)
		}
		*list = append(*list, Entry{Path: path, Source: source})
		return nil
	}
}
