package main

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReapCollectsEveryEndedChild(t *testing.T) {
	var pids []int
	for range 3 {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		// WNOWAIT leaves the ended child to be collected.
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}

	reap()

	for _, pid := range pids {
		if _, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
			t.Errorf("child %d was not collected: %v", pid, err)
		}
	}
}
