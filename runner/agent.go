package runner

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apitomy/axiom-operator/runner/process"
	"github.com/apitomy/axiom-operator/runner/redact"
	"github.com/apitomy/axiom-operator/runner/rpc"
)

// Agent is a running agent program.
type Agent interface {
	// Input takes what is said to the program; Output gives what it says.
	Input() io.Writer
	Output() io.Reader
	// Exited is closed when the program has ended, ExitCode then says how.
	Exited() <-chan struct{}
	ExitCode() int
	// LastWords is the last line that it wrote beside the protocol, complete
	// after Close.
	LastWords() string
	// Terminate asks the program and all it started to end; Kill ends them.
	Terminate()
	Kill()
	// Close lets go of input and output.
	Close()
}

// Launcher starts an agent program.
type Launcher func() (Agent, error)

// Program is an agent program that was not started yet.
type Program struct {
	// Children are the processes it is to be one of.
	Children *process.Children
	// Args is the program and its arguments, Env its whole environment.
	Args, Env []string
	// Stderr takes what it writes beside the protocol, without what the
	// redactor takes out.
	Stderr   io.Writer
	Redactor *redact.Redactor
}

// Launch is a [Launcher].
func (p Program) Launch() (Agent, error) {
	stdin, input, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe to agent: %w", err)
	}
	output, stdout, err := os.Pipe()
	if err != nil {
		closeAll(stdin, input)
		return nil, fmt.Errorf("make pipe from agent: %w", err)
	}
	// The program has its own copies of these once it runs.
	defer closeAll(stdin, stdout)

	words := &lastLine{next: p.Stderr}
	stderr := p.Redactor.Writer(words)
	started, err := p.Children.Start(process.Command{Args: p.Args, Env: p.Env, Stdin: stdin, Stdout: stdout, Stderr: stderr})
	if err != nil {
		closeAll(input, output)
		return nil, err
	}
	return &program{Process: started, input: input, output: output, stderr: stderr, words: words}, nil
}

// program is an agent that runs as a process.
type program struct {
	*process.Process
	input, output *os.File
	stderr        *redact.Writer
	words         *lastLine
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

func (p *program) Input() io.Writer  { return p.input }
func (p *program) Output() io.Reader { return p.output }
func (p *program) LastWords() string { return p.words.String() }

func (p *program) Close() {
	_ = p.stderr.Flush()
	closeAll(p.input, p.output)
}

// lastLine passes text on and remembers the last line that is not blank.
type lastLine struct {
	next io.Writer

	mu   sync.Mutex
	text string
}

// maxLastLine bounds what is remembered of a line, in bytes.
const maxLastLine = 512

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.text += string(p)
	if end := strings.LastIndexByte(strings.TrimRight(l.text, "\r\n\t "), '\n'); end >= 0 {
		l.text = l.text[end+1:]
	}
	if over := len(l.text) - maxLastLine; over > 0 {
		l.text = l.text[over:]
	}
	return l.next.Write(p)
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return strings.ToValidUTF8(strings.TrimSpace(l.text), "")
}

// link is the connection to a running agent. It ends as a whole: a program
// that closes the connection is ended, and the end of the program closes the
// connection once everything it said is handled.
type link struct {
	agent  Agent
	peer   *rpc.Peer
	timing Timing
	ended  chan struct{}
}

func connect(agent Agent, handler rpc.Handler, timing Timing) *link {
	l := &link{agent: agent, timing: timing, ended: make(chan struct{})}
	l.peer = rpc.Connect(agent.Output(), agent.Input(), handler)
	go l.supervise()
	return l
}

func (l *link) supervise() {
	defer close(l.ended)

	select {
	case <-l.agent.Exited():
	case <-l.peer.Done():
		l.stop()
	}
	l.drain()
	l.agent.Close()
}

// drain waits until what the agent said last is handled, but not for a process
// that left the agent's group and holds its output open.
func (l *link) drain() {
	timer := time.NewTimer(l.timing.Terminate)
	defer timer.Stop()
	select {
	case <-l.peer.Drained():
	case <-timer.C:
	}
	l.peer.Close(rpc.ErrClosed)
}

// stop tells the agent's program to end, insists after a while, and returns
// when it is gone.
func (l *link) stop() {
	select {
	case <-l.agent.Exited():
		return
	default:
	}
	l.agent.Terminate()
	timer := time.NewTimer(l.timing.Terminate)
	defer timer.Stop()
	select {
	case <-l.agent.Exited():
		return
	case <-timer.C:
	}
	l.agent.Kill()
	<-l.agent.Exited()
}
