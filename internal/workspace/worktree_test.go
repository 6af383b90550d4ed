package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
	"github.com/apitomy/axiom-operator/internal/workpath"
)

// A fixture is a worktree of a repository that was fetched from a real server.
type fixture struct {
	t          testing.TB
	server     *gitserver.Server
	repository *gitserver.Repository
	base       *Base
	objects    *Objects
	worktree   Worktree
}

func newFixture(t testing.TB, specs map[string]gitserver.FileSpec) *fixture {
	t.Helper()
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	return openFixture(t, server, repository, repository.Commit("main", specs))
}

func openFixture(t testing.TB, server *gitserver.Server, repository *gitserver.Repository, commit string) *fixture {
	t.Helper()
	f := &fixture{t: t, server: server, repository: repository}
	f.base = fetched(t, newTestCache(t), f.remote(), commit)
	f.objects = NewObjects(f.base)
	var err error
	if _, f.worktree, err = f.objects.OpenWorktree(Repository{Name: "app"}, "w", "topic", commit); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) remote() *Remote {
	return remoteOf(f.server, f.repository)
}

func write(path, content string) Operation { return Operation{Path: path, Content: []byte(content)} }

func remove(path string) Operation { return Operation{Path: path, Delete: true} }

func (f *fixture) write(operations ...Operation) []Change {
	f.t.Helper()
	w, changes, err := f.objects.Write(f.worktree, operations)
	if err != nil {
		f.t.Fatal(err)
	}
	f.worktree = w
	return changes
}

func (f *fixture) add(paths ...string) []string {
	f.t.Helper()
	w, staged, err := f.objects.Add(f.worktree, paths)
	if err != nil {
		f.t.Fatal(err)
	}
	f.worktree = w
	return staged
}

func (f *fixture) commit(message string) Commit {
	f.t.Helper()
	w, made, err := f.objects.Commit(f.worktree, message, 1800000000)
	if err != nil {
		f.t.Fatal(err)
	}
	f.worktree = w
	return made
}

func (f *fixture) takePack() []byte {
	f.t.Helper()
	pack, err := f.objects.TakePack()
	if err != nil {
		f.t.Fatal(err)
	}
	return pack
}

// files are all files of a tree, as `mode content`.
func (f *fixture) files(tree string) map[string]string {
	f.t.Helper()
	root, err := f.objects.TreeAt(tree)
	if err != nil {
		f.t.Fatal(err)
	}
	got := map[string]string{}
	f.walk(root, "", got)
	return got
}

func (f *fixture) walk(t Tree, prefix string, into map[string]string) {
	f.t.Helper()
	entries, err := t.objects.entriesOf(t.root)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		switch e.kind() {
		case KindDirectory:
			f.walk(Tree{objects: t.objects, root: e.id}, prefix+e.name+"/", into)
		case KindSubmodule:
			into[prefix+e.name] = e.mode + " " + e.id.String()
		default:
			data, err := t.objects.read(plumbing.BlobObject, e.id, 1<<20)
			if err != nil {
				f.t.Fatal(err)
			}
			into[prefix+e.name] = e.mode + " " + string(data)
		}
	}
}

func TestSupervisedCommits(t *testing.T) {
	t.Run("supervised 40: one intent is one commit, as git would write it", func(t *testing.T) {
		f := newFixture(t, files("a.txt", "one\n", "b.txt", "two\n"))
		start := f.worktree.Head
		f.write(write("a.txt", "ONE\r\n"), remove("b.txt"), Operation{Path: "run.sh", Content: []byte("#!/bin/sh\n"), Executable: new(true)})
		f.add(".")
		before := f.worktree
		made := f.commit("Change\r\n\r\nmore\r \t\n\n")
		again, second, err := f.objects.Commit(before, "Change\r\n\r\nmore\r \t\n\n", 1800000000)
		if err != nil || again != f.worktree || second != made {
			t.Errorf("a second time it is %v, %v", second, err)
		}
		f.repository.GitWith(f.takePack(), "unpack-objects", "-q")
		f.repository.Move("topic", made.Commit)
		want := "tree " + made.Tree + "\nparent " + start +
			"\nauthor Axiom Workflow <workflow@axiom.apitomy.io> 1800000000 +0000" +
			"\ncommitter Axiom Workflow <workflow@axiom.apitomy.io> 1800000000 +0000\n\nChange\n\nmore"
		if got := f.repository.Git("cat-file", "commit", made.Commit); got != want {
			t.Errorf("commit is %q, want %q", got, want)
		}
		if got := f.repository.Git("cat-file", "-s", made.Commit); got != strconv.Itoa(len(want)+1) {
			t.Errorf("commit has %s bytes", got)
		}
		f.repository.Git("fsck", "--strict", "--full")
		tree := f.repository.Git("ls-tree", "--format=%(objectmode) %(path)", made.Commit)
		if tree != "100644 a.txt\n100755 run.sh" {
			t.Errorf("tree is %q", tree)
		}
		if got := f.repository.Git("cat-file", "-s", made.Commit+":a.txt"); got != "5" {
			t.Errorf("line ends were changed: %s bytes", got)
		}
	})
	t.Run("supervised 40: refusals change nothing", func(t *testing.T) {
		f := newFixture(t, files("a", "1", ".gitignore", "*.log\nbuild/\n"))
		_, _, err := f.objects.Commit(f.worktree, "", 1)
		wantFailure(t, err, CodeEmptyIndex)
		f.write(write("a", "2"), write("x.log", "x"), write("build/out", "x"))
		_, _, err = f.objects.Commit(f.worktree, "message", 1)
		wantFailure(t, err, CodeEmptyIndex)
		before := f.worktree
		for paths, code := range map[string]string{
			"nothing":     CodePathspecUnmatched,
			"a/below":     CodePathspecUnmatched,
			"x.log":       CodePathspecIgnored,
			"build":       CodePathspecIgnored,
			"build/out":   CodePathspecIgnored,
			":(exclude)a": CodePathspecInvalid,
			":/":          CodePathspecInvalid,
			"../a":        workpath.CodeInvalid,
			"/a":          workpath.CodeInvalid,
			".git/config": workpath.CodeInvalid,
			"":            workpath.CodeInvalid,
		} {
			w, staged, err := f.objects.Add(f.worktree, []string{"a", paths})
			wantFailure(t, err, code)
			if w != before || staged != nil {
				t.Errorf("path %q staged %v", paths, staged)
			}
			if err != nil && !strings.HasPrefix(err.Error(), code+": paths[1]: ") {
				t.Errorf("failure %q", err)
			}
		}
		f.add("a")
		_, _, err = f.objects.Commit(f.worktree, " \r\n\t", 1)
		wantFailure(t, err, CodeMessageEmpty)
		_, _, err = f.objects.Commit(f.worktree, "a\x00b", 1)
		wantFailure(t, err, effect.CodeInputContract)
		_, _, err = f.objects.Switch(Repository{}, f.worktree, "other", f.worktree.Start)
		wantFailure(t, err, CodeLocalChanges)
	})
}

func TestSwitchKeepsBranches(t *testing.T) {
	f := newFixture(t, files("a", "1"))
	start := f.worktree.Start
	f.write(write("a", "2"))
	_, _, err := f.objects.Switch(Repository{}, f.worktree, "other", start)
	wantFailure(t, err, CodeLocalChanges)
	f.add(".")
	f.commit("two")
	left := f.worktree
	repository, w, err := f.objects.Switch(Repository{Name: "app"}, f.worktree, "other", start)
	if err != nil {
		t.Fatal(err)
	}
	if w.Branch != "other" || w.Head != start || f.files(w.WorkTree)["a"] != "100644 1" {
		t.Errorf("worktree %+v", w)
	}
	want := []Branch{{Name: "topic", Head: left.Head, Start: start}}
	if diff := cmp.Diff(want, repository.Branches); diff != "" {
		t.Error(diff)
	}
	repository, w, err = f.objects.Switch(repository, w, "topic", start)
	if err != nil || w != left {
		t.Errorf("back it is %+v, %v, want %+v", w, err, left)
	}
	if diff := cmp.Diff([]Branch{{Name: "other", Head: start, Start: start}}, repository.Branches); diff != "" {
		t.Error(diff)
	}
	repository, w, err = f.objects.OpenWorktree(Repository{Name: "app", Branches: want}, "second", "topic", start)
	if err != nil || w.Head != left.Head || w.Start != start || w.WorkTree != left.WorkTree || len(repository.Branches) != 0 {
		t.Errorf("opened at a branch that is kept it is %+v, %v", w, err)
	}
}

func TestBranchesOfWorktrees(t *testing.T) {
	others := []Worktree{{Repository: "app", Branch: "main"}}
	wantFailure(t, CheckBranch("main", "app", others), CodeBranchInUse)
	wantFailure(t, CheckBranch("a..b", "app", others), CodeBranchInvalid)
	if err := CheckBranch("main", "other", others); err != nil {
		t.Error(err)
	}
}

// The program of Git is asked about each name. It takes `@` for HEAD, which is no branch to it either.
func TestBranchNames(t *testing.T) {
	names := []string{
		"main", "a/b", "feature/x-1", "é", "a@b", "a@{b", "HEAD", "-a", "a-", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a//b", "/a", "a/", "a..b",
		"a b", "a\tb", "a\x7fb", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", `a\b`, "a{b", "refs/heads/a", "a.b", "a/b.lock", "@a", "a]", "",
	}
	for _, name := range names {
		want := exec.Command("git", "check-ref-format", "--branch", name).Run() == nil
		if got := IsBranchName(name); got != want {
			t.Errorf("%q: %v, git says %v", name, got, want)
		}
	}
	if IsBranchName("@") || IsBranchName(strings.Repeat("a", 250)) {
		t.Error("a name that servers cannot keep is taken")
	}
}

func TestSupervisedEntries(t *testing.T) {
	specs := files("plain", "text", "dir/file", "x", "crlf", "a\r\nb\r\n", ".gitattributes", "* text=auto eol=lf filter=evil ident\n", "bin", "a\x00b", "latin", "\xff\xfe", "pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
	specs["exec"] = gitserver.FileSpec{Content: "#!/bin/sh\n", Mode: "100755"}
	specs["link"] = gitserver.FileSpec{Content: "plain", Mode: "120000"}
	specs["up"] = gitserver.FileSpec{Content: "../../etc", Mode: "120000"}
	specs["module"] = gitserver.FileSpec{Content: strings.Repeat("5", 40), Mode: "160000"}
	specs["big"] = file(strings.Repeat("x", MaxFile+1))
	specs["edge"] = file(strings.Repeat("x", MaxFile))
	f := newFixture(t, specs)
	t.Run("supervised 38, 49: reads", func(t *testing.T) {
		link := "../../etc"
		got, err := f.objects.Read(f.worktree, []string{"exec", "up", "crlf", "edge", "pointer"})
		if err != nil {
			t.Fatal(err)
		}
		if !got[0].Executable || got[0].Size != 10 || got[0].Digest != digestOf([]byte("#!/bin/sh\n")) {
			t.Errorf("file %+v", got[0])
		}
		if diff := cmp.Diff(File{Path: "up", Link: &link}, got[1]); diff != "" {
			t.Error(diff)
		}
		if got[2].Content != "a\r\nb\r\n" || got[3].Size != MaxFile || !strings.HasPrefix(got[4].Content, "version") {
			t.Error("bytes of a file were changed")
		}
		_, err = f.objects.Read(f.worktree, []string{"edge", "edge"})
		wantFailure(t, err, effect.CodeResultTooLarge)
		for path, code := range map[string]string{
			"none": CodeFileNotFound, "dir": CodeFileNotFound, "dir/none": CodeFileNotFound, "plain/x": CodeFileNotFound,
			"bin": CodeFileNotText, "latin": CodeFileNotText, "big": CodeFileTooLarge, "link/x": CodePathThroughLink,
			"module": CodePathInSubmodule, "module/x": CodePathInSubmodule, "a/../b": workpath.CodeInvalid, `a\b`: workpath.CodeInvalid,
		} {
			_, err := f.objects.Read(f.worktree, []string{"plain", path})
			wantFailure(t, err, code)
			if err != nil && !strings.HasPrefix(err.Error(), code+": paths[1]: the") {
				t.Errorf("failure %q does not name the path by its place", err)
			}
		}
	})
	t.Run("supervised 35, 49: writes", func(t *testing.T) {
		for path, code := range map[string]string{
			"link": CodePathIsLink, "link/x": CodePathThroughLink, "module": CodePathInSubmodule, "module/x": CodePathInSubmodule,
			"dir": CodeFragmentPath, "plain/x": CodeFragmentPath, ".GIT/x": workpath.CodeInvalid, "../x": workpath.CodeInvalid,
		} {
			before := f.worktree
			w, changes, err := f.objects.Write(f.worktree, []Operation{write("fine", "x"), write(path, "x")})
			wantFailure(t, err, code)
			if w != before || changes != nil || len(f.objects.fresh) != 0 {
				t.Errorf("writing %q had an effect", path)
			}
		}
		_, _, err := f.objects.Write(f.worktree, []Operation{remove("dir")})
		wantFailure(t, err, CodeFragmentPath)
		before := f.files(f.worktree.WorkTree)
		changes := f.write(write("exec", "#!/bin/bash\n"), remove("up"), remove("none"), remove("plain/none"), write("plain", "text"),
			Operation{Path: "dir/file", Content: []byte("x"), Executable: new(true)})
		want := []Change{
			{"exec", ChangeModified},
			{"up", ChangeDeleted},
			{"none", ChangeUnchanged},
			{"plain/none", ChangeUnchanged},
			{"plain", ChangeUnchanged},
			{"dir/file", ChangeModified},
		}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Error(diff)
		}
		before["exec"], before["dir/file"] = "100755 #!/bin/bash\n", "100755 x"
		delete(before, "up")
		if diff := cmp.Diff(before, f.files(f.worktree.WorkTree)); diff != "" {
			t.Error(diff)
		}
		f.add(".")
		f.commit("all kinds")
		f.repository.GitWith(f.takePack(), "unpack-objects", "-q")
		f.repository.Move("topic", f.worktree.Head)
		f.repository.Git("fsck", "--strict", "--full")
		if got := f.repository.Git("ls-tree", f.worktree.Head, "module"); got != "160000 commit "+strings.Repeat("5", 40)+"\tmodule" {
			t.Errorf("submodule is %q", got)
		}
	})
}

func TestSupervisedRebuilt(t *testing.T) {
	t.Run("supervised 39: a worktree rebuilt from packs has equal ids", func(t *testing.T) {
		f := newFixture(t, files("a", "1", "b/c", "2"))
		twin := openFixture(t, f.server, f.repository, f.worktree.Start)
		rebuilt := NewObjects(f.base)
		for i, act := range []func(*fixture){
			func(f *fixture) { f.write(write("a", "unpushed")); f.add("."); f.commit("one") },
			func(f *fixture) { f.write(write("b/c", "staged"), write("b/d/e", "new")); f.add("b") },
			func(f *fixture) { f.write(write("b/c", "unstaged"), remove("a")) },
		} {
			act(f)
			act(twin)
			pack := f.takePack()
			if !bytes.Equal(pack, twin.takePack()) {
				t.Errorf("action %d gave another pack the second time", i)
			}
			if err := rebuilt.Load(pack); err != nil {
				t.Fatal(err)
			}
		}
		if f.worktree != twin.worktree {
			t.Errorf("ids %+v and %+v", f.worktree, twin.worktree)
		}
		if pack := f.takePack(); pack != nil {
			t.Error("there is a pack of nothing")
		}
		again := &fixture{t: t, objects: rebuilt, worktree: f.worktree}
		for _, tree := range []string{f.worktree.IndexTree, f.worktree.WorkTree} {
			if diff := cmp.Diff(f.files(tree), again.files(tree)); diff != "" {
				t.Error(diff)
			}
		}
	})
	t.Run("supervised 39: what is damaged is found", func(t *testing.T) {
		f := newFixture(t, files("a", "1"))
		f.write(write("a", strings.Repeat("new", 50)))
		pack := f.takePack()
		if _, err := NewObjects(f.base).Read(f.worktree, []string{"a"}); !errors.Is(err, ErrDamaged) {
			t.Errorf("without its pack: %v", err)
		}
		for i := range pack {
			damaged := bytes.Clone(pack)
			damaged[i] ^= 0x40
			if err := NewObjects(f.base).Load(damaged); !errors.Is(err, ErrDamaged) {
				t.Fatalf("byte %d: %v", i, err)
			}
			if err := NewObjects(f.base).Load(pack[:i]); !errors.Is(err, ErrDamaged) {
				t.Fatalf("cut at %d: %v", i, err)
			}
		}
	})
}

func TestWorkspaceTooLarge(t *testing.T) {
	f := newFixture(t, files("a", "1"))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		data := make([]byte, MaxFile)
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		f.write(Operation{Path: fmt.Sprint("f", i), Content: data})
		if _, err := f.objects.TakePack(); err != nil {
			wantFailure(t, err, CodeWorkspaceTooLarge)
			if i < 250 || i > 256 {
				t.Errorf("refused after %d files", i)
			}
			f.objects.Discard()
			return
		}
	}
	t.Error("nothing was refused")
}

// Random writes and deletions agree with a map, and staging them with the program of Git.
func TestRandomWritesAgreeWithAModelAndWithGit(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			f := newFixture(t, files("a", "1", "b/a", "2", "b/b/a", "3", "c.log", "4", ".gitignore", "*.log\n"))
			checkout := newCheckout(t, f)
			for range 60 {
				checkout.step(random)
			}
		})
	}
}

// A checkout is a worktree of Git's own that the same is done to.
type checkout struct {
	*fixture
	dir   string
	model map[string]string
}

func newCheckout(t testing.TB, f *fixture) *checkout {
	t.Helper()
	c := &checkout{fixture: f, dir: t.TempDir(), model: f.files(f.worktree.WorkTree)}
	for _, args := range [][]string{{"read-tree", f.worktree.Head}, {"checkout-index", "-a"}} {
		if output, err := c.git(args...); err != nil {
			t.Fatal(err, output)
		}
	}
	return c
}

// git runs in the checkout, with an index beside it.
func (c *checkout) git(args ...string) (string, error) {
	c.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), "GIT_DIR="+c.repository.Dir, "GIT_WORK_TREE="+c.dir, "GIT_INDEX_FILE="+c.dir+".index",
		"GIT_CONFIG_NOSYSTEM=1", "HOME="+c.dir)
	output, err := command.CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

var (
	someSegments = []string{"a", "b", "c.log", "d e", "build", "*"}
	someIgnores  = []string{
		"*.log\n", "build/\n", "b\n!b/a\n", "/a\n", "a\n!/a\n", "b/**\n!b/b/\n", "**/b/a\n", "b/*/a\n", "?\n!b\n", "[a-b]\n", "[!a]\n", "d e\n", "d\\ e  \n",
		"\\*\n", "# a\n", "!a\n", "b/b\n", "*\n!*/\n!a\n", "a/\r\n", "**\n", "b/**/a\n", "[[:alpha:]].log\n", "[]a]\n", "c.lo[g\n",
	}
)

func somePath(random *rand.Rand) string {
	segments := make([]string, 1+random.IntN(3))
	for i := range segments {
		segments[i] = someSegments[random.IntN(len(someSegments))]
	}
	return strings.Join(segments, "/")
}

func (c *checkout) step(random *rand.Rand) {
	c.t.Helper()
	switch random.IntN(5) {
	case 0:
		dir := []string{"", "b/", "b/b/", "build/"}[random.IntN(4)]
		c.apply(write(dir+".gitignore", someIgnores[random.IntN(len(someIgnores))]))
	case 1:
		paths := slices.Sorted(maps.Keys(c.model))
		if len(paths) > 0 {
			c.apply(remove(paths[random.IntN(len(paths))]))
		}
	case 2, 3:
		operation := write(somePath(random), strconv.Itoa(random.IntN(3)))
		if random.IntN(3) == 0 {
			operation.Executable = new(random.IntN(2) == 0)
		}
		c.apply(operation)
	case 4:
		path := "."
		if random.IntN(3) > 0 {
			path = somePath(random)
		}
		c.stage(path)
	}
}

// apply does one operation to the worktree, the model and the checkout.
func (c *checkout) apply(operation Operation) {
	c.t.Helper()
	old, had := c.model[operation.Path]
	isBlocked := slices.ContainsFunc(slices.Collect(maps.Keys(c.model)), func(path string) bool {
		return strings.HasPrefix(path, operation.Path+"/") || strings.HasPrefix(operation.Path, path+"/")
	})
	w, changes, err := c.objects.Write(c.worktree, []Operation{operation})
	if isBlocked {
		wantFailure(c.t, err, CodeFragmentPath)
		return
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.worktree = w
	want := ChangeUnchanged
	if operation.Delete {
		if delete(c.model, operation.Path); had {
			want = ChangeDeleted
		}
	} else {
		c.model[operation.Path] = modelOf(operation, old)
		switch {
		case !had:
			want = ChangeAdded
		case old != c.model[operation.Path]:
			want = ChangeModified
		}
	}
	if changes[0].Change != want {
		c.t.Errorf("%v: %s, want %s", operation, changes[0].Change, want)
	}
	if diff := cmp.Diff(c.model, c.files(c.worktree.WorkTree)); diff != "" {
		c.t.Fatal(diff)
	}
	c.mirror(operation)
}

func modelOf(operation Operation, old string) string {
	mode := "100644"
	if strings.HasPrefix(old, "100755") && operation.Executable == nil || operation.Executable != nil && *operation.Executable {
		mode = "100755"
	}
	return mode + " " + string(operation.Content)
}

// mirror does an operation in the checkout.
func (c *checkout) mirror(operation Operation) {
	c.t.Helper()
	path := filepath.Join(c.dir, operation.Path)
	if operation.Delete {
		_ = os.Remove(path)
		for dir := filepath.Dir(path); dir != c.dir && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		}
		return
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(c.model[operation.Path], "100755") {
		mode = 0o755
	}
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, operation.Content, mode), os.Chmod(path, mode))
	if err != nil {
		c.t.Fatal(err)
	}
}

// stage stages a path both ways: the index is the same, and so is what was staged.
func (c *checkout) stage(path string) {
	c.t.Helper()
	before := c.files(c.worktree.IndexTree)
	w, staged, err := c.objects.Add(c.worktree, []string{path})
	output, gitErr := c.git("--literal-pathspecs", "add", "--", path)
	if (err != nil) != (gitErr != nil) {
		c.t.Fatalf("add %q: %v, git: %v %s\nfiles %q\nindex %q", path, err, gitErr, output, c.model, before)
	}
	if err != nil {
		want := CodePathspecUnmatched
		if strings.Contains(output, "ignored by") {
			want = CodePathspecIgnored
		}
		wantFailure(c.t, err, want)
		// Git may have staged something all the same.
		c.writePack()
		if output, err := c.git("read-tree", c.worktree.IndexTree); err != nil {
			c.t.Fatal(err, output)
		}
		return
	}
	c.worktree = w
	tree, err := c.git("write-tree")
	if err != nil || tree != w.IndexTree {
		listed, _ := c.git("ls-files")
		c.t.Fatalf("index after adding %q to %q is %q, git has %s %v\nfiles %q", path, before, c.files(w.IndexTree), listed, err, c.model)
	}
	var want []string
	after := c.files(w.IndexTree)
	for path := range maps.All(merged(before, after)) {
		if before[path] != after[path] {
			want = append(want, path)
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, staged) {
		c.t.Errorf("staged %v, want %v", staged, want)
	}
}

// writePack gives Git the objects made so far.
func (c *checkout) writePack() {
	c.t.Helper()
	if pack := c.takePack(); pack != nil {
		c.repository.GitWith(pack, "unpack-objects", "-q")
	}
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func TestWhatStandsAtAPath(t *testing.T) {
	specs := files("file", "x", "dir/file", "y")
	specs["exec"] = gitserver.FileSpec{Content: "x", Mode: "100755"}
	specs["link"] = gitserver.FileSpec{Content: "dir", Mode: "120000"}
	specs["module"] = gitserver.FileSpec{Content: strings.Repeat("5", 40), Mode: "160000"}
	f := newFixture(t, specs)
	tree, err := f.objects.TreeAt(f.worktree.WorkTree)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Kind{
		"file": KindFile, "dir": KindDirectory, "exec": KindExecutable, "link": KindLink, "module": KindSubmodule, "none": KindNone,
		"file/none": KindNone, "dir/none": KindNone,
	} {
		if got, err := tree.Kind(path); err != nil || got != want {
			t.Errorf("%s is %q, %v", path, got, err)
		}
	}
	for path, want := range map[string]Kind{
		"file": KindFile, "exec": KindFile, "dir": KindDirectory, "link": KindLink, "link/file": KindLink, "module/x": KindSubmodule,
		"file/none": KindNone, "none": KindNone,
	} {
		data, id, got, err := tree.Blob(path, 10)
		if err != nil || got != want || (len(data) == 1) != (want == KindFile) || (id != "") != (want == KindFile) {
			t.Errorf("%s is %q %s %q, %v", path, data, id, got, err)
		}
	}
	_, _, _, err = tree.Blob("dir/file", 0)
	wantFailure(t, err, CodeFileTooLarge)
}

func TestSupervisedNothingIsExecuted(t *testing.T) {
	t.Run("supervised 49: filters, hooks and hostile configuration are files like any other", func(t *testing.T) {
		marker := filepath.Join(t.TempDir(), "executed")
		evil := "touch " + marker
		specs := files(
			".gitattributes", "* filter=evil diff=evil merge=evil working-tree-encoding=UTF-16 text eol=crlf export-subst\n",
			".gitconfig", "[filter \"evil\"]\n\tclean = "+evil+"\n\tsmudge = "+evil+"\n[core]\n\tfsmonitor = "+evil+"\n",
			"hooks/pre-commit", "#!/bin/sh\n"+evil+"\n",
			".gitmodules", "[submodule \"x\"]\n\tpath = x\n\turl = ext::sh -c "+evil+"\n\tupdate = !"+evil+"\n",
			"text", "one\ntwo\r\n$Format:%H$\n",
		)
		specs["hooks/post-checkout"] = gitserver.FileSpec{Content: "#!/bin/sh\n" + evil + "\n", Mode: "100755"}
		f := newFixture(t, specs)
		f.write(write("text", "two\r\nthree\n"), write("hooks/post-commit", "#!/bin/sh\n"+evil+"\n"))
		f.add(".")
		f.commit("change")
		f.takePack()
		if got := f.files(f.worktree.IndexTree)["text"]; got != "100644 two\r\nthree\n" {
			t.Errorf("file is %q", got)
		}
		push := f.push()
		if err := push.Perform(t.Context(), observe(t, push)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(marker); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("something was executed: %v", err)
		}
	})
}

// What an action did not change it does not make: a pack has no more than it needs.
func TestPacksHaveNothingNeedless(t *testing.T) {
	f := newFixture(t, files("a/b/c", "1", "a/d", "2", "e", "3"))
	f.write(write("a/b/c", "1"), remove("a/none"), write("e", "4"))
	if got := len(f.objects.fresh); got != 2 {
		t.Errorf("%d objects were made, want a file and a tree", got)
	}
	f.takePack()
	f.add("a/b", "e")
	if pack := f.takePack(); pack != nil {
		t.Error("staging what is there made objects")
	}
}

func TestEmptyTrees(t *testing.T) {
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	f := openFixture(t, server, repository, repository.RawCommit("main", repository.Object("tree", nil)))
	if paths, err := f.objects.Glob(f.worktree, []string{"**"}, nil); err != nil || len(paths) != 0 {
		t.Errorf("found %q, %v", paths, err)
	}
	if staged := f.add("."); len(staged) != 0 {
		t.Errorf("staged %q", staged)
	}
	f.write(write("a/b", "x"))
	f.add(".")
	f.commit("one")
	f.write(remove("a/b"))
	if f.worktree.WorkTree != emptyTree.String() {
		t.Errorf("directories are left: %v", f.files(f.worktree.WorkTree))
	}
	if staged := f.add("a"); !slices.Equal(staged, []string{"a/b"}) {
		t.Errorf("staged %q", staged)
	}
	f.commit("none")
	f.takePack()
	push := f.push()
	if err := push.Perform(t.Context(), observe(t, push)); err != nil {
		t.Fatal(err)
	}
	repository.Git("fsck", "--strict", "--full")
}

func TestFilesAsActionsReturnThem(t *testing.T) {
	link := "b"
	got := []any{File{Path: "a", Link: &link}.JSON(), File{Path: "b", Content: "c", Executable: true, Size: 1, Digest: "sha256:d"}.JSON()}
	want := []any{
		map[string]any{"path": "a", "link": "b"},
		map[string]any{"path": "b", "content": "c", "executable": true, "size": int64(1), "digest": "sha256:d"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
