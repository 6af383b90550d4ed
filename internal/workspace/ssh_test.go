package workspace

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/testing/gitserver"
)

// overSSH is a repository behind SSH, known by its key.
func overSSH(t testing.TB) (*gitserver.Repository, *gitserver.SSH, *Remote) {
	t.Helper()
	server := gitserver.Start(t)
	repository := server.Create(t, "app")
	door := server.StartSSH(t)
	dialer := &net.Dialer{}
	return repository, door, &Remote{
		URL:  "ssh://git@" + door.Address + "/app.git",
		Auth: Auth{PrivateKey: door.PrivateKey, KnownHosts: []byte(knownhosts.Line([]string{door.Address}, door.HostKey) + "\n")},
		Dial: dialer.DialContext,
	}
}

func TestSSH(t *testing.T) {
	repository, door, remote := overSSH(t)
	commit := repository.Commit("main", files("a", "1"))
	objects := NewObjects(fetched(t, newTestCache(t), remote, commit))
	_, w, err := objects.OpenWorktree(Repository{Name: "app"}, "w", "topic", commit)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, repository: repository, objects: objects, worktree: w}
	made := f.round("two")
	push := &PushEffect{Remote: remote, Objects: objects, Worktree: f.worktree}
	if err := push.Perform(t.Context(), observe(t, push)); err != nil {
		t.Fatal(err)
	}
	if got := observe(t, push); got.Verdict != effect.Compatible || repository.Head("topic") != made.Commit {
		t.Errorf("observed %+v", got)
	}
	want := []string{"git-upload-pack '/app.git'", "git-upload-pack '/app.git'", "git-receive-pack '/app.git'", "git-upload-pack '/app.git'"}
	if got := door.Commands(); !slices.Equal(got, want) {
		t.Errorf("commands %q", got)
	}
}

func TestStrangersOverSSH(t *testing.T) {
	_, elsewhere, _ := overSSH(t)
	for name, tc := range map[string]struct {
		change func(*Remote, *gitserver.SSH)
		code   string
		reason effect.Reason
	}{
		"a host that is not known": {
			change: func(r *Remote, _ *gitserver.SSH) { r.Auth.KnownHosts = nil }, code: effect.CodeCredentialsRefused,
		},
		"a host known by another port": {
			change: func(r *Remote, d *gitserver.SSH) {
				r.Auth.KnownHosts = []byte(knownhosts.Line([]string{"127.0.0.1:1"}, d.HostKey))
			},
			code: effect.CodeCredentialsRefused,
		},
		"a host known by another key": {
			change: func(r *Remote, d *gitserver.SSH) {
				r.Auth.KnownHosts = []byte(knownhosts.Line([]string{d.Address}, elsewhere.HostKey))
			},
			reason: effect.ReasonAuthentication,
		},
		"a host whose key was revoked": {
			change: func(r *Remote, d *gitserver.SSH) {
				r.Auth.KnownHosts = append(r.Auth.KnownHosts, "@revoked "+knownhosts.Line([]string{d.Address}, d.HostKey)+"\n"...)
			},
			reason: effect.ReasonAuthentication,
		},
		"a key that is not known": {
			change: func(r *Remote, _ *gitserver.SSH) { r.Auth.PrivateKey = gitserver.NewKey(t) }, reason: effect.ReasonAuthentication,
		},
		"a key that is none": {
			change: func(r *Remote, _ *gitserver.SSH) { r.Auth.PrivateKey = []byte("key") }, code: effect.CodeCredentialsRefused,
		},
		"nobody there": {
			change: func(r *Remote, _ *gitserver.SSH) {
				r.Dial = func(context.Context, string, string) (net.Conn, error) {
					return nil, errors.New("no route to 127.0.0.1")
				}
			},
			reason: effect.ReasonNetwork,
		},
		"no such repository": {
			change: func(r *Remote, _ *gitserver.SSH) { r.URL = strings.Replace(r.URL, "app", "other", 1) }, reason: effect.ReasonIncomplete,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, door, remote := overSSH(t)
			tc.change(remote, door)
			_, err := remote.List(t.Context())
			if tc.code != "" {
				wantFailure(t, err, tc.code)
				return
			}
			if reason, _, _ := Unavailable(err); reason != tc.reason {
				t.Errorf("error %v (%s), want %s", err, reason, tc.reason)
			}
			if err != nil && strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("error %q names the host", err)
			}
		})
	}
}

func TestKnownHosts(t *testing.T) {
	_, door, _ := overSSH(t)
	key := strings.TrimPrefix(knownhosts.Line([]string{"x"}, door.HostKey), "x ")
	hashed := knownhosts.HashHostname("git.example.com")
	for line, want := range map[string]bool{
		"git.example.com " + key:                                 true,
		"other,git.example.com " + key:                           true,
		"*.example.com " + key:                                   true,
		"*.example.com,!git.example.com " + key:                  false,
		"gi?.example.com " + key:                                 true,
		hashed + " " + key:                                       true,
		knownhosts.HashHostname("other.example.com") + " " + key: false,
		"[git.example.com]:2222 " + key:                          false,
		"@cert-authority *.example.com " + key:                   false,
		"# git.example.com " + key:                               false,
	} {
		known, err := parseKnownHosts([]byte("\n"+line+"\n"), "git.example.com")
		if err != nil || len(known.keys) == 1 != want {
			t.Errorf("%q: %d keys, %v", line, len(known.keys), err)
		}
	}
	known, err := parseKnownHosts([]byte("[git.example.com]:2222 "+key), "[git.example.com]:2222")
	if err != nil || len(known.keys) != 1 {
		t.Errorf("with a port: %v, %v", known, err)
	}
	if _, err := parseKnownHosts([]byte("x ssh-ed25519 nonsense!\n"), "x"); err == nil {
		t.Error("nonsense was read")
	}
}

func TestSSHAddresses(t *testing.T) {
	for address, want := range map[string]sshAddress{
		"ssh://git.example.com/acme/app.git":     {"git", "git.example.com", "22", "/acme/app.git"},
		"ssh://me@git.example.com:2222/acme/app": {"me", "git.example.com", "2222", "/acme/app"},
		"ssh://me@git.example.com/~/app":         {"me", "git.example.com", "22", "app"},
		"git@git.example.com:acme/app.git":       {"git", "git.example.com", "22", "acme/app.git"},
		"me@git.example.com:/srv/it's here!":     {"me", "git.example.com", "22", "/srv/it's here!"},
	} {
		if got, ok := parseSSH(address); !ok || got != want {
			t.Errorf("%s: %+v, %v", address, got, ok)
		}
	}
	for _, address := range []string{"ssh://", "ssh:///path", "git.example.com:path", "git@host", "git@:path", "ssh://%zz"} {
		if got, ok := parseSSH(address); ok {
			t.Errorf("%s: %+v", address, got)
		}
	}
	if got := quote("/srv/it's here!"); got != `'/srv/it'\''s here'\!''` {
		t.Errorf("quoted %s", got)
	}
}
