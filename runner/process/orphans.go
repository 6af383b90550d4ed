package process

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
)

// ReapOrphans waits for processes that became children of this one without
// having been started by it, until the context ends. Only the first process of
// a pod, or a subreaper, has such children.
func (c *Children) ReapOrphans(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		c.reap()
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
	}
}

func (c *Children) reap() {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended and somebody waited for it
		}
		if pid, ok := endedChild(text, os.Getpid()); ok {
			c.waitForOrphan(pid)
		}
	}
}

func (c *Children) waitForOrphan(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if !c.pids[pid] {
		_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
	}
}

// endedChild reads a line of /proc/<pid>/stat and returns the process if it is
// a child of parent that ended and was not waited for. The name of a program
// may hold any character, parentheses too; state and parent follow the last.
func endedChild(stat []byte, parent int) (pid int, ok bool) {
	number, _, _ := bytes.Cut(stat, []byte(" "))
	rest := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(rest) < 2 || string(rest[0]) != "Z" || string(rest[1]) != strconv.Itoa(parent) {
		return 0, false
	}
	pid, err := strconv.Atoi(string(number))
	return pid, err == nil
}
