package kubelet

import (
	"bufio"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestWhatAPodStartedEndsWithIt(t *testing.T) {
	// The inner shell leads a group of its own, as agents do below the runner.
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `set -m; bash -c 'echo $$; sleep 1000; :' & wait`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	inner, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(descendants(cmd.Process.Pid), inner) {
		t.Errorf("%d is not among the descendants", inner)
	}
	if err := signal(cmd); err != nil {
		t.Fatal(err)
	}
	// The pipe ends when the last process that holds it has.
	if _, err := bufio.NewReader(out).ReadString('\n'); err == nil {
		t.Error("something survived and speaks")
	}
	_ = cmd.Wait()
}
