package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const testReference = "axiom.local/test:dev"

func TestTheSameInputsGiveTheSameBytes(t *testing.T) {
	directory := t.TempDir()
	program := writeProgram(t, directory, "manager", elf.PT_LOAD)
	data := writeFile(t, directory, "ca.crt", []byte("roots"))
	var archives [2][]byte
	for i := range archives {
		output := filepath.Join(directory, "images", string(rune('a'+i))+".tar")
		mustRun(t, "-reference", testReference, "-output", output,
			"-program", "/usr/local/bin/manager="+program, "-data", "/etc/ssl/certs/ca-certificates.crt="+data)
		archives[i] = readFile(t, output)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two builds from the same files differ")
	}
}

func TestLayout(t *testing.T) {
	directory := t.TempDir()
	output := filepath.Join(directory, "image.tar")
	mustRun(t, "-reference", testReference, "-output", output,
		"-program", "/bin/busybox="+writeProgram(t, directory, "busybox", elf.PT_LOAD),
		"-data", "/etc/ssl/certs/ca-certificates.crt="+writeFile(t, directory, "ca.crt", []byte("roots")),
		"-link", "/bin/sh=busybox",
		"-entrypoint", "/bin/busybox", "-entrypoint", "sh")

	img := openImage(t, output)
	entries := entriesOf(t, img)
	cases := map[string]struct {
		path     string
		typeflag byte
		mode     int64
		uid      int
		link     string
	}{
		"a program is executable":                   {path: "bin/busybox", typeflag: tar.TypeReg, mode: 0o755},
		"data is readable":                          {path: "etc/ssl/certs/ca-certificates.crt", typeflag: tar.TypeReg, mode: 0o644},
		"a link points where it was told":           {path: "bin/sh", typeflag: tar.TypeSymlink, mode: 0o777, link: "busybox"},
		"everyone may write to /tmp, and it sticks": {path: "tmp/", typeflag: tar.TypeDir, mode: 0o1777},
		"the user owns a home":                      {path: "home/nonroot/", typeflag: tar.TypeDir, mode: 0o750, uid: 65532},
		"a parent nobody described is there":        {path: "bin/", typeflag: tar.TypeDir, mode: 0o755},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := entries[tc.path]
			if !found {
				t.Fatalf("%s is not in the image", tc.path)
			}
			if got.Typeflag != tc.typeflag || got.Mode != tc.mode || got.Uid != tc.uid || got.Linkname != tc.link {
				t.Errorf("got type %c mode %o uid %d link %q, want %+v", got.Typeflag, got.Mode, got.Uid, got.Linkname, tc)
			}
			if !got.ModTime.Equal(epoch) {
				t.Errorf("is dated %s, want %s", got.ModTime, epoch)
			}
		})
	}

	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/bin/busybox", "sh"}) {
		t.Errorf("user %q runs %q, want 65532:65532 and busybox sh", config.Config.User, config.Config.Entrypoint)
	}
}

func TestAnArchiveIsWrittenOnlyWhenItsImageChanges(t *testing.T) {
	directory := t.TempDir()
	output := filepath.Join(directory, "image.tar")
	program := writeProgram(t, directory, "manager", elf.PT_LOAD)
	build := func(reference string) string {
		return mustRun(t, "-reference", reference, "-output", output, "-program", "/manager="+program)
	}
	steps := []struct {
		when   string
		change func()
		want   string
	}{
		{when: "there is none", change: func() {}, want: "written"},
		{when: "nothing changed", change: func() {}, want: "unchanged"},
		{when: "the program changed", change: func() { appendTo(t, program, "x") }, want: "written"},
		{when: "the archive is cut short", change: func() { truncate(t, output) }, want: "written"},
	}
	for _, step := range steps {
		step.change()
		if got := build(testReference); !strings.HasSuffix(got, step.want+"\n") {
			t.Fatalf("when %s: got %q, want %s", step.when, got, step.want)
		}
	}
	if got := build("axiom.local/other:dev"); !strings.HasSuffix(got, "written\n") {
		t.Errorf("under another name: got %q, want written", got)
	}
}

func TestRefusals(t *testing.T) {
	directory := t.TempDir()
	dynamic := writeProgram(t, directory, "dynamic", elf.PT_INTERP)
	script := writeFile(t, directory, "script", []byte("#!/bin/sh\n"+strings.Repeat("true\n", 20)))
	output := filepath.Join(directory, "image.tar")
	cases := map[string]struct {
		args      []string
		wantUsage bool
		want      string
	}{
		"a dynamic program":    {args: []string{"-program", "/a=" + dynamic}, want: "not a static program"},
		"no program at all":    {args: []string{"-program", "/a=" + script}, want: "bad magic number"},
		"a missing file":       {args: []string{"-data", "/a=" + directory + "/missing"}, want: "no such file"},
		"a relative path":      {args: []string{"-data", "a=" + script}, wantUsage: true},
		"a path alone":         {args: []string{"-link", "/a"}, wantUsage: true},
		"a word that is stray": {args: []string{"stray"}, wantUsage: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := run(append([]string{"-reference", testReference, "-output", output}, tc.args...), io.Discard, io.Discard)
			if err == nil {
				t.Fatal("was accepted")
			}
			if got := errors.Is(err, errUsage); got != tc.wantUsage {
				t.Errorf("is a usage error: %t, want %t (%v)", got, tc.wantUsage, err)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %q, want it to say %q", err, tc.want)
			}
			if _, err := os.Stat(output); err == nil {
				t.Error("an archive was written all the same")
			}
		})
	}
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if err := run(args, &stdout, &stderr); err != nil {
		t.Fatalf("run %q: %v\n%s", args, err, stderr.String())
	}
	return stdout.String()
}

// writeProgram writes the smallest ELF file with one segment of the given type.
func writeProgram(t *testing.T, directory, name string, segment elf.ProgType) string {
	t.Helper()
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Phoff: 64, Phentsize: 56, Phnum: 1,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)

	var content bytes.Buffer
	for _, part := range []any{header, elf.Prog64{Type: uint32(segment)}} {
		if err := binary.Write(&content, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return writeFile(t, directory, name, content.Bytes())
}

func writeFile(t *testing.T, directory, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	writeFile(t, filepath.Dir(path), filepath.Base(path), append(readFile(t, path), text...))
}

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
}

func openImage(t *testing.T, path string) v1.Image {
	t.Helper()
	img, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// entriesOf lists the entries of all layers by name.
func entriesOf(t *testing.T, img v1.Image) map[string]*tar.Header {
	t.Helper()
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]*tar.Header{}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		addEntries(t, entries, content)
	}
	return entries
}

func addEntries(t *testing.T, entries map[string]*tar.Header, content io.Reader) {
	t.Helper()
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		entries[header.Name] = header
	}
}
