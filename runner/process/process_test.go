package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// run runs a shell script to its end.
func run(t *testing.T, script string, environ ...string) (code int, stdout string) {
	t.Helper()
	var out bytes.Buffer
	p, err := (&Children{}).Start(Command{Args: []string{"sh", "-c", script}, Env: append(environ, "PATH="+os.Getenv("PATH")), Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	return p.ExitCode(), out.String()
}

func TestExitCodes(t *testing.T) {
	cases := map[string]struct {
		script string
		want   int
	}{
		"well":      {"exit 0", 0},
		"badly":     {"exit 3", 3},
		"by signal": {"kill -KILL $$", 137},
		"by term":   {"kill -TERM $$", 143},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, _ := run(t, tc.script); got != tc.want {
				t.Errorf("exit code %d, want %d", got, tc.want)
			}
		})
	}
}

func TestEnvironmentIsExactlyTheGivenOne(t *testing.T) {
	t.Setenv("OF_THE_TEST", "x")
	if _, out := run(t, "echo $OF_THE_TEST$GIVEN; cat", "GIVEN=y"); out != "y\n" {
		t.Errorf("output %q", out)
	}
}

func TestMissingProgram(t *testing.T) {
	for _, name := range []string{"no-such-program", "/no/such/program"} {
		_, err := (&Children{}).Start(Command{Args: []string{name}})
		if !IsMissing(err) || !strings.Contains(err.Error(), "start "+name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	_, err := (&Children{}).Start(Command{Args: []string{t.TempDir()}})
	if err == nil || IsMissing(err) {
		t.Errorf("directory: error %v", err)
	}
}

// TestGroupEndsWithItsProgram holds a fifo open in the program and its child;
// it is closed when both are gone.
func TestGroupEndsWithItsProgram(t *testing.T) {
	cases := map[string]struct {
		script string
		end    func(*Process)
	}{
		"exit":      {"exec 3>fifo; sleep 3600 & exit 0", func(*Process) {}},
		"terminate": {"exec 3>fifo; sleep 3600 & wait", (*Process).Terminate},
		"kill":      {"trap '' TERM; exec 3>fifo; sleep 3600 & wait", (*Process).Kill},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := (&Children{}).Start(Command{Args: []string{"sh", "-c", strings.ReplaceAll(tc.script, "fifo", fifo)}, Env: os.Environ()})
			if err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(fifo) // returns once the program has it open
			if err != nil {
				t.Fatal(err)
			}
			tc.end(p)
			<-p.Exited()
			if n, err := file.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("read %d, %v: the child is still there", n, err)
			}
			_ = file.Close()
		})
	}
}

func TestInputIsHandedOver(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	p, err := (&Children{}).Start(Command{Args: []string{"cat"}, Env: os.Environ(), Stdin: r, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString("hello")
	_, _ = r.Close(), w.Close()
	if code := p.ExitCode(); code != 0 || out.String() != "hello" {
		t.Errorf("exit code %d, output %q", code, out.String())
	}
}

// awaitZombie returns once the process has ended, waited for or not.
func awaitZombie(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Skip("cannot watch a process:", err)
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

// TestOrphansAreReaped makes this process take in an orphan, as the first
// process of a pod does: it leaves its group and outlives its parent.
func TestOrphansAreReaped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Skip("cannot take in orphans:", err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	dir := t.TempDir()
	fifo, ready, number := filepath.Join(dir, "fifo"), filepath.Join(dir, "ready"), filepath.Join(dir, "pid")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), syscall.Mkfifo(ready, 0o600)); err != nil {
		t.Fatal(err)
	}
	// The parent stays until the orphan-to-be has left the group.
	orphan := "setsid sh -c 'echo $$ >" + number + "; echo >" + ready + "; read x <" + fifo + "' >/dev/null 2>&1 &"
	if code, _ := run(t, orphan+" read x <"+ready+"; exit 4"); code != 4 {
		t.Fatalf("exit code %d", code)
	}
	release, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns once the orphan reads
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(number)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	_ = release.Close()
	awaitZombie(t, pid)
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("orphan %d is gone before it was waited for: %v", pid, err)
	}
	(&Children{}).reap()
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("orphan %d is still there", pid)
	}
}

func TestReapingLeavesOwnProgramsAlone(t *testing.T) {
	cmd := exec.Command("sh", "-c", "exit 4")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitZombie(t, cmd.Process.Pid)
	children := &Children{pids: map[int]bool{cmd.Process.Pid: true}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	children.ReapOrphans(ctx)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit code %d, want 4: somebody else took it", code)
	}
}

func TestEndedChild(t *testing.T) {
	cases := map[string]struct {
		stat string
		want int
	}{
		"zombie of ours":      {"42 (sh) Z 7 42 42 0", 42},
		"name with brackets":  {"42 (a) Z 7 (b) Z 7 42", 42},
		"zombie of another":   {"42 (sh) Z 8 42 42 0", 0},
		"running":             {"42 (sh) S 7 42 42 0", 0},
		"name like a zombie":  {"42 (x) Z 7) S 7 42", 0},
		"cut short":           {"42 (sh) Z", 0},
		"empty":               {"", 0},
		"number that is none": {"x (sh) Z 7 1", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := endedChild([]byte(tc.stat), 7)
			if got != tc.want || ok != (tc.want != 0) {
				t.Errorf("got %d, %t", got, ok)
			}
		})
	}
}
