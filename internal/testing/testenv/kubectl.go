package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeCtl runs the real kubectl as one user, so that suites show what a user
// would see.
type KubeCtl struct {
	binary     string
	directory  string
	kubeconfig string
}

func newKubeCtl(binary string, cfg *rest.Config) (*KubeCtl, error) {
	dir, err := os.MkdirTemp("", "axiom-kubectl-")
	if err != nil {
		return nil, fmt.Errorf("make kubeconfig directory: %w", err)
	}
	k := &KubeCtl{binary: binary, directory: dir, kubeconfig: filepath.Join(dir, "config")}
	if err := clientcmd.WriteToFile(kubeconfigOf(cfg), k.kubeconfig); err != nil {
		return nil, fmt.Errorf("write kubeconfig: %w", err)
	}
	return k, nil
}

// Close removes the kubeconfig.
func (k *KubeCtl) Close() error {
	return os.RemoveAll(k.directory)
}

// Kubeconfig is the path of the user's kubeconfig.
func (k *KubeCtl) Kubeconfig() string {
	return k.kubeconfig
}

// Binary is the path of kubectl itself.
func (k *KubeCtl) Binary() string {
	return k.binary
}

// Run runs kubectl with the given standard input and returns both outputs in
// one text, also with an error.
func (k *KubeCtl) Run(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, k.binary, append([]string{"--kubeconfig", k.kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+k.directory)
	cmd.Stdin = strings.NewReader(stdin)
	return run(cmd)
}

// Command runs a program of the PATH in the suite's own environment and returns
// both outputs in one text, also with an error.
func Command(ctx context.Context, program string, args ...string) (string, error) {
	return run(exec.CommandContext(ctx, program, args...))
}

func run(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), err)
	}
	return out.String(), nil
}

func kubeconfigOf(cfg *rest.Config) clientcmdapi.Config {
	const name = "test"
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: cfg.Host, CertificateAuthorityData: cfg.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Token: cfg.BearerToken,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}
