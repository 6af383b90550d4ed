package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settled is how long nothing may happen for a process to count as quiet.
const settled = 300 * time.Millisecond

// process is a running operator.
type process struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	address string
	started time.Time
}

// startProcess runs this program as the operator. It returns before the
// operator's caches are full.
func startProcess(ctx context.Context, settings managerSettings, log io.Writer) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	p := &process{cmd: exec.CommandContext(ctx, program, managerCommand)}
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("open input of the operator: %w", err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open output of the operator: %w", err)
	}
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	if err := json.NewEncoder(p.stdin).Encode(settings); err != nil {
		return nil, errors.Join(fmt.Errorf("hand settings to the operator: %w", err), p.kill())
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the operator did not start: %w", err), p.kill())
	}
	p.address = strings.TrimSpace(line)
	return p, nil
}

// stop lets the process end by itself.
func (p *process) stop() error {
	if err := p.stdin.Close(); err != nil {
		return fmt.Errorf("stop the operator: %w", err)
	}
	return p.cmd.Wait()
}

// kill ends the process without a last word.
func (p *process) kill() error {
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the operator: %w", err)
	}
	_ = p.cmd.Wait() // it says that it was killed
	return nil
}

func (p *process) stats(ctx context.Context) (managerStats, error) {
	var stats managerStats
	answer, err := p.ask(ctx, "/stats")
	if err != nil {
		return stats, err
	}
	defer func() { _ = answer.Close() }()
	if err := json.NewDecoder(answer).Decode(&stats); err != nil {
		return stats, fmt.Errorf("read the operator's counters: %w", err)
	}
	return stats, nil
}

func (p *process) ask(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask the operator: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the operator: %w", err)
	}
	return answer.Body, nil
}

// heapInUse is the process's heap without the garbage, in bytes.
func (p *process) heapInUse(ctx context.Context) (uint64, error) {
	collected, err := p.ask(ctx, "/debug/pprof/heap?gc=1")
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, collected)
	if err := errors.Join(err, collected.Close()); err != nil {
		return 0, fmt.Errorf("collect garbage: %w", err)
	}
	stats, err := p.stats(ctx)
	return stats.Heap, err
}

// profile writes a CPU profile of the next seconds to a file.
func (p *process) profile(ctx context.Context, length time.Duration, path string) error {
	answer, err := p.ask(ctx, "/debug/pprof/profile?seconds="+strconv.Itoa(int(length.Seconds())))
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	file, err := os.Create(path) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	_, err = io.Copy(file, answer)
	return errors.Join(err, file.Close())
}

// quiet waits until the process has nothing to do and asks nothing, and
// returns its counters and when it had become so.
func (p *process) quiet(ctx context.Context) (managerStats, time.Time, error) {
	var last managerStats
	since := time.Now()
	for {
		stats, err := p.stats(ctx)
		if err != nil {
			return stats, since, err
		}
		if stats.Queued > 0 || stats.requests() != last.requests() || total(stats.Reconciles) != total(last.Reconciles) {
			since = time.Now()
		}
		if time.Since(since) > settled {
			return stats, since, nil
		}
		last = stats
		// To tell of 10,000 runs takes the operator some milliseconds.
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return stats, since, err
		}
	}
}

func total(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// resident is the process's memory in RAM, in bytes.
func (p *process) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of the operator: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, errors.New("read memory of the operator: statm has no second field")
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read memory of the operator: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// pause waits, or ends with the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
