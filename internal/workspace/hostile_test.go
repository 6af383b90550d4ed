package workspace

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
	"github.com/apitomy/axiom-operator/internal/workpath"
)

// rawTree is a tree of lines `mode name` and ids.
func rawTree(entries ...string) []byte {
	var data bytes.Buffer
	for i := 0; i < len(entries); i += 2 {
		id := plumbing.NewHash(entries[i+1])
		data.WriteString(entries[i] + "\x00")
		data.Write(id[:])
	}
	return data.Bytes()
}

func TestMalformedTreesAreUnreadable(t *testing.T) {
	server := gitserver.Start(t)
	for name, entries := range map[string]func(blob, tree string) []byte{
		"a name twice":             func(blob, _ string) []byte { return rawTree("100644 a", blob, "100644 a", blob) },
		"a file and a directory":   func(blob, tree string) []byte { return rawTree("100644 a", blob, "100644 a.b", blob, "40000 a", tree) },
		"names out of order":       func(blob, _ string) []byte { return rawTree("100644 b", blob, "100644 a", blob) },
		"a name with a slash":      func(blob, _ string) []byte { return rawTree("100644 a/b", blob) },
		"an empty name":            func(blob, _ string) []byte { return rawTree("100644 ", blob) },
		"a mode that is none":      func(blob, _ string) []byte { return rawTree("10064x a", blob) },
		"a mode of no known kind":  func(blob, _ string) []byte { return rawTree("060000 a", blob) },
		"an id that is cut off":    func(blob, _ string) []byte { return rawTree("100644 a", blob)[:20] },
		"no end of a name":         func(string, string) []byte { return []byte("100644 abc") },
		"a tree where a file is":   func(_, tree string) []byte { return rawTree("100644 a", tree) },
		"a file where a tree is":   func(blob, _ string) []byte { return rawTree("40000 a", blob) },
		"a commit where a file is": func(blob, _ string) []byte { return append(rawTree("100644 a", blob), 'x') },
	} {
		t.Run(name, func(t *testing.T) {
			repository := server.Create(t, strings.ReplaceAll(name, " ", "-"))
			blob := repository.Object("blob", []byte("x"))
			tree := repository.Object("tree", rawTree("100644 x", blob))
			commit := repository.RawCommit("main", repository.Object("tree", entries(blob, tree)))
			base, err := newTestCache(t).Open(t.Context(), keyOf(commit), remoteOf(server, repository))
			if err == nil {
				t.Fatal("it was taken", base.Close())
			}
			if _, _, ok := Unavailable(err); !ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestTreesThatNameWhatIsGitsOwn(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	blob := repository.Object("blob", []byte("[core]\n\tfsmonitor = touch /tmp/owned\n"))
	dot := repository.Object("tree", rawTree("100644 config", blob))
	root := repository.Object("tree", rawTree("100644 ..", blob, "40000 .git", dot, "100644 .gitmodules", blob, "0100664 a", blob, "40000 git~1", dot))
	f := openFixture(t, server, repository, repository.RawCommit("main", root))
	t.Run("supervised 49: they are not found, not read and not written", func(t *testing.T) {
		paths, err := f.objects.Glob(f.worktree, []string{"**"}, nil)
		if err != nil || !slices.Equal(paths, []string{".gitmodules", "a"}) {
			t.Errorf("found %q, %v", paths, err)
		}
		for _, path := range []string{"..", ".git/config", "git~1/config"} {
			_, err := f.objects.Read(f.worktree, []string{path})
			wantFailure(t, err, workpath.CodeInvalid)
		}
	})
	t.Run("supervised 49: they and odd modes are carried along unchanged", func(t *testing.T) {
		f.write(write("b", "new"))
		f.add(".")
		f.commit("more")
		got, err := f.objects.entriesOf(plumbing.NewHash(f.worktree.IndexTree))
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, e := range got {
			lines = append(lines, e.mode+" "+e.name)
		}
		want := []string{"100644 ..", "40000 .git", "100644 .gitmodules", "0100664 a", "100644 b", "40000 git~1"}
		if !slices.Equal(lines, want) {
			t.Errorf("tree has %q", lines)
		}
	})
}

// A tree that has another one many times, and so on, has more files than there is time for.
func TestTreesWithoutAnEnd(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	blob := repository.Object("blob", []byte("x"))
	tree := repository.Object("tree", rawTree("100644 x", blob))
	for range 30 {
		var entries []string
		for i := range 10 {
			entries = append(entries, fmt.Sprintf("40000 %d", i), tree)
		}
		tree = repository.Object("tree", rawTree(entries...))
	}
	f := openFixture(t, server, repository, repository.RawCommit("main", tree))
	for _, include := range []string{"**", "none"} {
		_, err := f.objects.Glob(f.worktree, []string{include}, nil)
		wantFailure(t, err, CodeTooManyPaths)
	}
	f.write(write("0/1/2/new", "x"))
	if got := f.add("."); !slices.Equal(got, []string{"0/1/2/new"}) {
		t.Errorf("staged %q", got)
	}
}

// A tree deeper than a path can name is carried along.
func TestDeepTrees(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	blob := repository.Object("blob", []byte("x"))
	tree := repository.Object("tree", rawTree("100644 x", blob))
	for range 600 {
		tree = repository.Object("tree", rawTree("40000 d", tree, "100644 x", blob))
	}
	f := openFixture(t, server, repository, repository.RawCommit("main", tree))
	paths, err := f.objects.Glob(f.worktree, []string{"**/x"}, nil)
	if err != nil || len(paths) != 512 {
		t.Errorf("found %d paths, %v", len(paths), err)
	}
	f.write(write(strings.Repeat("d/", 500)+"y", "new"))
	if got := f.add("."); len(got) != 1 {
		t.Errorf("staged %q", got)
	}
}

// packOf is a pack of these entries, each a header and data that are compressed.
func packOf(entries ...[]byte) []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(entries)))
	return append(append(pack, bytes.Join(entries, nil)...), make([]byte, 20)...)
}

func packed(header []byte, data []byte) []byte {
	var entry bytes.Buffer
	entry.Write(header)
	z := zlib.NewWriter(&entry)
	_, _ = z.Write(data)
	_ = z.Close()
	return entry.Bytes()
}

func sizeHeader(kind plumbing.ObjectType, size int) []byte {
	header := []byte{byte(kind)<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		header[len(header)-1] |= 0x80
		header = append(header, byte(size&0x7f))
	}
	return header
}

// deltaOf copies the whole of a base so many times.
func deltaOf(base, times int) []byte {
	delta := binary.AppendUvarint(nil, uint64(base))
	delta = binary.AppendUvarint(delta, uint64(base*times))
	for range times {
		delta = append(delta, 0x80|0x10|0x20|0x40, byte(base), byte(base>>8), byte(base>>16))
	}
	return delta
}

func unpackTest(t testing.TB, pack []byte, limits packLimits) (*Base, error) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i, name := range []string{packFile, indexFile} {
		var err error
		if files[i], err = os.Create(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = files[i].Close() })
	}
	if _, err := files[0].Write(pack); err != nil {
		t.Fatal(err)
	}
	if err := unpack(files[0], files[1], limits); err != nil {
		return nil, err
	}
	base := &Base{pack: files[0], index: files[1]}
	return base, base.check()
}

var testLimits = packLimits{objects: 1000, total: 1 << 20, object: 1 << 19, delta: 1 << 16}

func TestDeltas(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 10)
	blob := packed(sizeHeader(plumbing.BlobObject, len(text)), text)
	delta := deltaOf(len(text), 3)
	id := plumbing.ComputeHash(plumbing.BlobObject, text)
	byID := packed(append(sizeHeader(plumbing.REFDeltaObject, len(delta)), id[:]...), delta)
	tripled := bytes.Repeat(text, 3)
	tripledID := plumbing.ComputeHash(plumbing.BlobObject, tripled)
	again := deltaOf(len(tripled), 2)
	byDeltaID := packed(append(sizeHeader(plumbing.REFDeltaObject, len(again)), tripledID[:]...), again)
	byOffset := packed(append(sizeHeader(plumbing.OFSDeltaObject, len(delta)), byte(len(blob))), delta)
	for name, pack := range map[string][]byte{
		"by id":                     packOf(blob, byID, byDeltaID),
		"by id, before their bases": packOf(byDeltaID, byID, blob),
		"by offset":                 packOf(blob, byOffset, byDeltaID),
		"by both, of what is twice": packOf(blob, byOffset, blob, byID, byDeltaID),
	} {
		t.Run(name, func(t *testing.T) {
			base, err := unpackTest(t, pack, testLimits)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range [][]byte{text, tripled, bytes.Repeat(text, 6)} {
				got, found, err := base.read(plumbing.BlobObject, plumbing.ComputeHash(plumbing.BlobObject, want), 1000)
				if err != nil || !found || !bytes.Equal(got, want) {
					t.Errorf("read %q, %v, %v", got, found, err)
				}
			}
		})
	}
}

func TestHostilePacks(t *testing.T) {
	text := []byte("0123456789")
	blob := packed(sizeHeader(plumbing.BlobObject, len(text)), text)
	id := plumbing.ComputeHash(plumbing.BlobObject, text)
	byID := func(id plumbing.Hash, delta []byte) []byte {
		return packed(append(sizeHeader(plumbing.REFDeltaObject, len(delta)), id[:]...), delta)
	}
	chain := [][]byte{blob}
	for size := len(text); size < 1<<16; size *= 4 {
		data := bytes.Repeat(text, size/len(text))
		chain = append(chain, byID(plumbing.ComputeHash(plumbing.BlobObject, data), deltaOf(size, 4)))
	}
	for name, tc := range map[string]struct {
		pack []byte
		want error
	}{
		"nothing":                          {nil, errUnreadable},
		"another format":                   {[]byte("PICK\x00\x00\x00\x02\x00\x00\x00\x00"), errUnreadable},
		"another version":                  {[]byte("PACK\x00\x00\x00\x07\x00\x00\x00\x00"), errUnreadable},
		"more objects than there are":      {packOf(blob)[:len(packOf(blob))-20], nil},
		"cut off":                          {packOf(blob)[:20], errUnreadable},
		"too many objects":                 {[]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"), errTooLarge},
		"a kind that there is not":         {packOf(packed([]byte{5 << 4}, nil)), errUnreadable},
		"a size without an end":            {packOf(bytes.Repeat([]byte{0xff}, 100)), errUnreadable},
		"a size that is too large":         {packOf(packed(sizeHeader(plumbing.BlobObject, 1<<40), text)), errTooLarge},
		"less data than claimed":           {packOf(packed(sizeHeader(plumbing.BlobObject, 11), text)), errUnreadable},
		"more data than claimed":           {packOf(packed(sizeHeader(plumbing.BlobObject, 1), bytes.Repeat(text, 1<<20))), errUnreadable},
		"an object that is too large":      {packOf(packed(sizeHeader(plumbing.BlobObject, 1<<19+1), make([]byte, 1<<19+1))), errTooLarge},
		"a bomb":                           {packOf(packed(sizeHeader(plumbing.BlobObject, 64<<20), make([]byte, 64<<20))), errTooLarge},
		"data that are not compressed":     {packOf(append(sizeHeader(plumbing.BlobObject, 5), "hello"...)), errUnreadable},
		"a delta without a base":           {packOf(byID(plumbing.ZeroHash, deltaOf(10, 2))), errUnreadable},
		"a delta of itself":                {packOf(packed(append(sizeHeader(plumbing.OFSDeltaObject, 5), 0), make([]byte, 5))), errUnreadable},
		"a base before the pack":           {packOf(blob, packed(append(sizeHeader(plumbing.OFSDeltaObject, 5), 0x7f), make([]byte, 5))), errUnreadable},
		"a base between objects":           {packOf(blob, packed(append(sizeHeader(plumbing.OFSDeltaObject, 5), 3), make([]byte, 5))), errUnreadable},
		"a distance without an end":        {packOf(blob, append(sizeHeader(plumbing.OFSDeltaObject, 5), bytes.Repeat([]byte{0xff}, 50)...)), errUnreadable},
		"an empty delta":                   {packOf(blob, byID(id, nil)), errUnreadable},
		"a delta for another base":         {packOf(blob, byID(id, deltaOf(11, 2))), errUnreadable},
		"a delta that claims another size": {packOf(blob, byID(id, append([]byte{10, 5}, deltaOf(10, 2)[2:]...))), errUnreadable},
		"a delta that claims no end":       {packOf(blob, byID(id, append([]byte{10}, bytes.Repeat([]byte{0xff}, 20)...))), errUnreadable},
		"a delta that claims a bomb":       {packOf(blob, byID(id, binary.AppendUvarint([]byte{10}, 1<<39))), errTooLarge},
		"deltas that grow and grow":        {packOf(chain...), errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := unpackTest(t, tc.pack, testLimits)
			if !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	text := bytes.Repeat([]byte("0123456789"), 10)
	blob := packed(sizeHeader(plumbing.BlobObject, len(text)), text)
	delta := deltaOf(len(text), 3)
	f.Add(packOf(blob, packed(append(sizeHeader(plumbing.OFSDeltaObject, len(delta)), byte(len(blob))), delta)))
	f.Add(packOf(packed(sizeHeader(plumbing.TreeObject, 0), nil)))
	f.Fuzz(func(t *testing.T, pack []byte) {
		base, err := unpackTest(t, pack, testLimits)
		if err != nil {
			if !errors.Is(err, errUnreadable) && !errors.Is(err, errTooLarge) {
				t.Errorf("error %v", err)
			}
			return
		}
		for i := range base.count {
			r, err := base.record(i)
			if err != nil {
				t.Fatal(err)
			}
			if _, found, err := base.read(r.kind, r.id, testLimits.total); err != nil || !found {
				t.Errorf("object %s cannot be read: %v", r.id, err)
			}
		}
	})
}

func FuzzListing(f *testing.F) {
	f.Add("003d" + strings.Repeat("a", 40) + " refs/heads/main\n0000")
	f.Add("0000")
	f.Add("005c" + strings.Repeat("0", 40) + " capabilities^{}\x00report-status symref=HEAD:refs/heads/x\n0000")
	f.Fuzz(func(t *testing.T, text string) {
		listing, err := readListing(strings.NewReader(text))
		if err != nil {
			if _, _, ok := Unavailable(err); !ok {
				wantFailure(t, err, CodeObjectFormatUnsupported)
			}
			return
		}
		if !strings.Contains(text, "0000") {
			t.Error("a list without an end was taken")
		}
		for ref, id := range listing.refs {
			if ref == "" || !IsCommitID(id) {
				t.Errorf("ref %q is at %q", ref, id)
			}
		}
	})
}

func TestOtherObjectFormatsAreRefused(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	server.Answer(saysRefs(fmt.Sprintf("%04x", 4+64+5+19+1+20) + strings.Repeat("a", 64) + " HEAD\x00object-format=sha256" + strings.Repeat(" ", 20) + "0000"))
	_, err := remoteOf(server, repository).List(t.Context())
	wantFailure(t, err, CodeObjectFormatUnsupported)
}

// All that is allocated bounds how the heap can grow.
func TestMemoryOfALargeRepository(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "large")
	repository.Git("config", "core.compression", "0")
	repository.Git("config", "core.bigFileThreshold", "1m")
	commit := repository.Commit("main", largeFiles(60))
	remote, cache := remoteOf(server, repository), newTestCache(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	base := fetched(t, cache, remote, commit)
	objects := NewObjects(base)
	_, w, err := objects.OpenWorktree(Repository{Name: "large"}, "w", "topic", commit)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := objects.Write(w, []Operation{write("new", "x")}); err != nil {
		t.Fatal(err)
	}
	_, err = objects.Read(w, []string{"f0"})
	wantFailure(t, err, CodeFileTooLarge)
	runtime.ReadMemStats(&after)
	info, err := base.pack.Stat()
	if err != nil || info.Size() < 60<<20 {
		t.Fatalf("pack has %d bytes, %v", info.Size(), err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 24<<20 {
		t.Errorf("%d MiB were allocated for a repository of 60 MiB", allocated>>20)
	}
}

// largeFiles are so many files of a MiB that cannot be compressed.
func largeFiles(count int) map[string]gitserver.FileSpec {
	specs := map[string]gitserver.FileSpec{}
	state := uint64(88172645463325252)
	for i := range count {
		data := make([]byte, 0, 1<<20)
		for len(data) < 1<<20 {
			state ^= state << 13
			state ^= state >> 7
			state ^= state << 17
			data = binary.LittleEndian.AppendUint64(data, state)
		}
		specs[fmt.Sprint("f", i)] = file(string(data))
	}
	return specs
}

func TestSupervisedTwoRepositories(t *testing.T) {
	t.Run("supervised 48: one is published, the other untouched", func(t *testing.T) {
		server := gitserver.Start(t)
		one, two := server.Create(t, "one"), server.Create(t, "two")
		a := openFixture(t, server, one, one.Commit("main", files("a", "1")))
		b := openFixture(t, server, two, two.Commit("main", files("b", "1")))
		objects := NewObjects(a.base, b.base)
		a.objects, b.objects = objects, objects
		a.write(write("a", "dirty"), write("same", "same"))
		b.write(write("b", "dirty"), write("same", "same"))
		pack := a.takePack()
		rebuilt := NewObjects(a.base, b.base)
		if err := rebuilt.Load(pack); err != nil {
			t.Fatal(err)
		}
		a.objects, b.objects = rebuilt, rebuilt
		a.add(".")
		a.commit("publish")
		a.write(write("a", "dirtier"))
		push := a.push()
		if err := push.Perform(t.Context(), observe(t, push)); err != nil {
			t.Fatal(err)
		}
		if got := observe(t, push).Verdict; got != effect.Compatible {
			t.Errorf("observed %s", got)
		}
		one.Git("fsck", "--strict", "--full")
		if two.Head("topic") != "" || b.files(b.worktree.WorkTree)["b"] != "100644 dirty" {
			t.Error("the other repository was touched")
		}
	})
}

func TestGlobAgreesWithANaiveSearch(t *testing.T) {
	specs := files("a.go", "", "b/a.go", "", "b/c/a.go", "", "b/c/a.txt", "", "[x]", "", "é/a.go", "", "vendor/x/a.go", "")
	specs["link"] = gitserver.FileSpec{Content: "a.go", Mode: "120000"}
	specs["module"] = gitserver.FileSpec{Content: strings.Repeat("5", 40), Mode: "160000"}
	f := newFixture(t, specs)
	f.write(write("new/a.go", "x"), remove("a.go"))
	all := slices.Sorted(func(yield func(string) bool) {
		for path, content := range f.files(f.worktree.WorkTree) {
			if !strings.HasPrefix(content, "160000") && !yield(path) {
				return
			}
		}
	})
	for _, tc := range []struct{ include, exclude []string }{
		{include: []string{"**"}},
		{include: []string{"*"}},
		{include: []string{"**/*.go"}, exclude: []string{"vendor/**"}},
		{include: []string{"b/**", "new/*"}, exclude: []string{"**/*.txt", "b/a.go"}},
		{include: []string{"[[]x]", "?/a.go", "b/?/a.*"}},
		{include: []string{"none"}},
		{include: nil},
	} {
		include, _ := workpath.NewPatterns(tc.include)
		exclude, _ := workpath.NewPatterns(tc.exclude)
		want := []string{}
		for _, path := range all {
			if len(include) > 0 && workpath.Selects(include, exclude, path) {
				want = append(want, path)
			}
		}
		got, err := f.objects.Glob(f.worktree, tc.include, tc.exclude)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v finds %q, %v, want %q", tc, got, err, want)
		}
	}
	_, err := f.objects.Glob(f.worktree, []string{"**"}, []string{"a", "[a"})
	wantFailure(t, err, workpath.CodePattern)
	if err != nil && !strings.Contains(err.Error(), "exclude[1]") {
		t.Errorf("failure %v", err)
	}
}

func TestTooManyPaths(t *testing.T) {
	specs := map[string]gitserver.FileSpec{}
	for i := range MaxGlobbed {
		specs[fmt.Sprint("f", i)] = file("")
	}
	f := newFixture(t, specs)
	paths, err := f.objects.Glob(f.worktree, []string{"*"}, nil)
	if err != nil || len(paths) != MaxGlobbed {
		t.Errorf("found %d, %v", len(paths), err)
	}
	f.write(write("one-more", ""))
	_, err = f.objects.Glob(f.worktree, []string{"*"}, nil)
	wantFailure(t, err, CodeTooManyPaths)
}
