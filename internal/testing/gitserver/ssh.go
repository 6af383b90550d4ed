package gitserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// SSHUser that the server knows.
const SSHUser = "git"

// An SSH is a Git server's other door.
type SSH struct {
	// Address of the server, `127.0.0.1:port`.
	Address string
	// PrivateKey that it lets in, in PEM.
	PrivateKey []byte
	// HostKey it shows.
	HostKey ssh.PublicKey

	server *Server
	config *ssh.ServerConfig

	mu       sync.Mutex
	commands []string
}

// StartSSH serves the same repositories by SSH until the test ends.
func (s *Server) StartSSH(t testing.TB) *SSH {
	t.Helper()
	host, _ := newKey(t)
	client, private := newKey(t)
	door := &SSH{HostKey: host.PublicKey(), PrivateKey: private, server: s}
	door.config = &ssh.ServerConfig{
		PublicKeyCallback: func(metadata ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if metadata.User() != SSHUser || string(key.Marshal()) != string(client.PublicKey().Marshal()) {
				return nil, ssh.ErrNoAuth
			}
			return &ssh.Permissions{}, nil
		},
	}
	door.config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door.Address = listener.Addr().String()
	var wait sync.WaitGroup
	wait.Go(func() { door.accept(listener, &wait) })
	t.Cleanup(func() {
		_ = listener.Close()
		wait.Wait()
	})
	return door
}

// NewKey makes a key that no server knows, in PEM.
func NewKey(t testing.TB) []byte {
	t.Helper()
	_, private := newKey(t)
	return private
}

func newKey(t testing.TB) (ssh.Signer, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// Commands are those that were asked for.
func (d *SSH) Commands() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.commands...)
}

func (d *SSH) accept(listener net.Listener, wait *sync.WaitGroup) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		wait.Go(func() { d.serve(connection) })
	}
}

func (d *SSH) serve(connection net.Conn) {
	defer connection.Close() //nolint:errcheck // The client is gone.
	_, channels, requests, err := ssh.NewServerConn(connection, d.config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			if request.Type != "exec" {
				_ = request.Reply(false, nil)
				continue
			}
			_ = request.Reply(true, nil)
			go d.run(channel, request.Payload)
		}
	}
}

// run does what a session asks for: one of the services of Git, for a repository of the server.
func (d *SSH) run(channel ssh.Channel, payload []byte) {
	defer channel.Close() //nolint:errcheck // The client is gone.
	var asked struct{ Command string }
	if ssh.Unmarshal(payload, &asked) != nil {
		return
	}
	d.mu.Lock()
	d.commands = append(d.commands, asked.Command)
	d.mu.Unlock()
	service, path, _ := strings.Cut(asked.Command, " ")
	if service != "git-upload-pack" && service != "git-receive-pack" {
		return
	}
	command := exec.Command(filepath.Join(execPath(), service), filepath.Join(d.server.root, filepath.Clean("/"+strings.Trim(path, "'"))))
	command.Env = d.server.environment()
	command.Stdout = channel
	// Not by way of Stdin: the service ends before its client does.
	input, err := command.StdinPipe()
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	}()
	status := struct{ Status uint32 }{}
	if err := command.Run(); err != nil {
		status.Status = 1
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
}
