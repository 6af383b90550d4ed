// Package process starts programs in process groups of their own and ends
// whole groups.
//
// A pod's first process also inherits every orphan of the pod, and nobody else
// waits for those: [Children.ReapOrphans] does, without taking from the
// programs started here the exit status that somebody waits for.
//
// The package knows nothing of what the programs do.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// leftover is how long the output of a program is read on after its end, if a
// process that left the group keeps it open.
const leftover = 2 * time.Second

// Command is a program to start.
type Command struct {
	// Args is the program and its arguments.
	Args []string
	// Env is its whole environment, in the form NAME=value.
	Env []string
	// Stdin, if set, is what it reads; nothing otherwise.
	Stdin *os.File
	// Stdout and Stderr take what it writes. An [*os.File] is handed over as it
	// is, anything else is copied to.
	Stdout, Stderr io.Writer
}

// Children are the programs started by this process. The zero value is ready
// for use, by several goroutines at once.
type Children struct {
	mu   sync.Mutex
	pids map[int]bool
}

// Process is a started program.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	code   int
}

// Start starts a program in a process group of its own, in the working
// directory of the caller. An error that [IsMissing] reports means that there
// is no such program.
func (c *Children) Start(command Command) (*Process, error) {
	cmd := exec.Command(command.Args[0], command.Args[1:]...)
	cmd.Env = append([]string{}, command.Env...) // nil would mean the caller's
	if command.Stdin != nil {
		cmd.Stdin = command.Stdin
	}
	cmd.Stdout = command.Stdout
	cmd.Stderr = command.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = leftover
	if err := c.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Args[0], err)
	}
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	go c.wait(p)
	return p, nil
}

// start holds the lock while a program starts: one that ends at once must not
// be taken for an orphan before its number is known.
func (c *Children) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if err := cmd.Start(); err != nil {
		return err
	}
	if c.pids == nil {
		c.pids = make(map[int]bool)
	}
	c.pids[cmd.Process.Pid] = true
	return nil
}

func (c *Children) wait(p *Process) {
	defer close(p.exited)

	state, err := p.cmd.Process.Wait()
	p.code = exitCode(state, err)
	// What is left of the group would keep the output open.
	p.Kill()
	// The status is taken already; this waits for the output to be copied, and
	// a failure to copy it is no failure of the program.
	_ = p.cmd.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pids, p.cmd.Process.Pid)
}

func exitCode(state *os.ProcessState, err error) int {
	if err != nil {
		return -1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// IsMissing reports whether a program could not be started because there is no
// such file.
func IsMissing(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist)
}

// Exited is closed when the program has ended and its group with it.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitCode waits for the end of the program and returns its exit code, 128 and
// the number of the signal that ended it, or -1 if its status got lost.
func (p *Process) ExitCode() int {
	<-p.exited
	return p.code
}

// Terminate asks the group to end.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Kill ends the group.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// signal reaches every process of the group; a group that is gone needs none.
func (p *Process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }
