// Package kubelet plays the node for suites that have an API server but no
// cluster: it runs the main container of every pod as a local process, and
// reports how it went in the pod's status.
//
// What a pod declares is honoured as far as a process allows: environment from
// literals and Secrets, files from ConfigMaps and Secrets, arguments, exit
// codes, deletion. Paths of mounts are moved below a directory of the pod, in
// arguments and in the environment alike. Init containers are not run: the
// programs that they would install are given.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubelet runs the pods of one namespace.
type Kubelet struct {
	// Client is the node's access to the API server.
	Client client.WithWatch
	// Namespace whose pods are run.
	Namespace string
	// Programs is a directory with what init containers would install to /axiom.
	Programs string
	// Volumes is a directory with what is in persistent volumes, for as long as it is
	// there; needed by pods that have any.
	Volumes string
	// Log gets the output of all pods.
	Log io.Writer

	mu      sync.Mutex
	running map[types.UID]*process
	wait    sync.WaitGroup
}

// process is a pod that runs.
type process struct {
	cmd  *exec.Cmd
	name string
	// isSilent: the pod is gone, so nothing is reported.
	isSilent bool
}

// Run plays the node until the context ends, then kills what runs.
func (k *Kubelet) Run(ctx context.Context) error {
	k.running = map[types.UID]*process{}
	defer k.wait.Wait()
	defer k.killAll()
	for ctx.Err() == nil {
		if err := k.watch(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// Kill ends a pod's process as if the machine had taken it; the pod fails.
func (k *Kubelet) Kill(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.running {
		if p.name == name {
			return signal(p.cmd) == nil
		}
	}
	return false
}

func (k *Kubelet) watch(ctx context.Context) error {
	list := &corev1.PodList{}
	if err := k.Client.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range list.Items {
		k.observe(ctx, &list.Items[i])
	}
	watcher, err := k.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(k.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	defer watcher.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-watcher.ResultChan():
			if !open {
				return nil
			}
			pod, isPod := event.Object.(*corev1.Pod)
			if !isPod {
				return nil
			}
			if event.Type == "DELETED" {
				k.remove(pod.UID)
				continue
			}
			k.observe(ctx, pod)
		}
	}
}

func (k *Kubelet) observe(ctx context.Context, pod *corev1.Pod) {
	if !pod.DeletionTimestamp.IsZero() {
		k.remove(pod.UID)
		return
	}
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, runs := k.running[pod.UID]; runs {
		return
	}
	p := &process{name: pod.Name}
	k.running[pod.UID] = p
	cmd, dir, err := k.command(ctx, pod)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_, _ = fmt.Fprintf(k.Log, "kubelet: start pod %s: %v\n", pod.Name, err)
		k.wait.Go(func() { k.report(ctx, pod, failed(127, "ContainerCannotRun", err.Error())) })
		return
	}
	p.cmd = cmd
	k.wait.Go(func() { k.attend(ctx, pod, p, dir) })
}

// attend reports that the pod runs, waits for its end and reports that.
func (k *Kubelet) attend(ctx context.Context, pod *corev1.Pod, p *process, dir string) {
	defer func() { _ = os.RemoveAll(dir) }()
	k.report(ctx, pod, running(pod.Spec.Containers[0]))
	err := p.cmd.Wait()
	k.mu.Lock()
	isSilent := p.isSilent
	k.mu.Unlock()
	if isSilent || ctx.Err() != nil {
		return
	}
	if err == nil {
		k.report(ctx, pod, ended(corev1.PodSucceeded, 0, "Completed", ""))
		return
	}
	code := 1
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
		if status, isUnix := exit.Sys().(syscall.WaitStatus); isUnix && status.Signaled() {
			code = 128 + int(status.Signal())
		}
	}
	k.report(ctx, pod, failed(int32(code), "Error", "")) //nolint:gosec // an exit code fits
}

func (k *Kubelet) report(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		stored := &corev1.Pod{}
		if err := k.Client.Get(ctx, client.ObjectKeyFromObject(pod), stored); err != nil {
			return client.IgnoreNotFound(err)
		}
		if stored.UID != pod.UID {
			return nil
		}
		stored.Status.Phase, stored.Status.ContainerStatuses = status.Phase, status.ContainerStatuses
		return client.IgnoreNotFound(k.Client.Status().Update(ctx, stored))
	})
	if err != nil && ctx.Err() == nil {
		_, _ = fmt.Fprintf(k.Log, "kubelet: report pod %s: %v\n", pod.Name, err)
	}
}

func (k *Kubelet) remove(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p, runs := k.running[uid]; runs {
		p.isSilent = true
		_ = signal(p.cmd)
	}
}

func (k *Kubelet) killAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.running {
		p.isSilent = true
		_ = signal(p.cmd)
	}
}

// signal kills the process and all it has started, in whatever group, so that
// nothing survives its pod.
func signal(cmd *exec.Cmd) error {
	if cmd == nil || cmd.Process == nil {
		return nil
	}
	started := descendants(cmd.Process.Pid)
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	for _, pid := range started {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended with the others
	}
	return err
}

func failed(code int32, reason, message string) corev1.PodStatus {
	return ended(corev1.PodFailed, code, reason, message)
}

func ended(phase corev1.PodPhase, code int32, reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
		Name: "main",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message, FinishedAt: metav1.Now(),
		}},
	}}}
}

// command is the pod's main container as a process, with its files in a
// directory of its own.
func (k *Kubelet) command(ctx context.Context, pod *corev1.Pod) (*exec.Cmd, string, error) {
	container := pod.Spec.Containers[0]
	dir, err := os.MkdirTemp("", "axiom-pod-")
	if err != nil {
		return nil, "", fmt.Errorf("make pod directory: %w", err)
	}
	move, err := k.mount(ctx, pod, container, dir)
	if err != nil {
		return nil, dir, err
	}
	env, err := k.environment(ctx, pod, container, move)
	if err != nil {
		return nil, dir, err
	}
	var args []string
	for _, arg := range append(append([]string(nil), container.Command...), container.Args...) {
		args = append(args, move.path(arg))
	}
	// The process outlives a cancelled context until killAll ends it, so that its
	// end is always the node's doing.
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // see above
	cmd.Env = slices.Concat(env, []string{"PATH=" + os.Getenv("PATH")})
	cmd.Dir = move.path(container.WorkingDir)
	cmd.Stdout, cmd.Stderr = k.Log, k.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, dir, nil
}

// mover leads from the paths of mounts to where their files are.
type mover map[string]string

// path moves a text that is a path on a mount, and leaves any other as it is.
func (m mover) path(text string) string {
	for mount, target := range m {
		if rest, isBelow := strings.CutPrefix(text, mount); isBelow && (rest == "" || rest[0] == '/') {
			return target + rest
		}
	}
	return text
}

// mount writes the files of the container's volumes below dir and returns what
// moves its paths there.
func (k *Kubelet) mount(ctx context.Context, pod *corev1.Pod, container corev1.Container, dir string) (mover, error) {
	move := mover{}
	for _, m := range container.VolumeMounts {
		target := filepath.Join(dir, m.MountPath)
		if m.MountPath == "/axiom" {
			target = k.Programs
		}
		if claim := claimOf(pod, m.Name); claim != "" {
			dir, err := k.volume(ctx, pod, claim)
			if err != nil {
				return nil, err
			}
			move[m.MountPath] = dir
			continue
		}
		move[m.MountPath] = target
		if target == k.Programs {
			continue
		}
		files, err := k.files(ctx, pod, m.Name)
		if err != nil {
			return nil, err
		}
		if err := writeFiles(target, files); err != nil {
			return nil, err
		}
	}
	return move, nil
}

func (k *Kubelet) files(ctx context.Context, pod *corev1.Pod, name string) (map[string][]byte, error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != name {
			continue
		}
		switch {
		case volume.Secret != nil:
			secret := &corev1.Secret{}
			err := k.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: volume.Secret.SecretName}, secret)
			return pick(secret.Data, volume.Secret.Items), err
		case volume.ConfigMap != nil:
			config := &corev1.ConfigMap{}
			err := k.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: volume.ConfigMap.Name}, config)
			data := map[string][]byte{}
			for key, value := range config.Data {
				data[key] = []byte(value)
			}
			maps.Copy(data, config.BinaryData)
			return pick(data, volume.ConfigMap.Items), err
		}
	}
	return map[string][]byte{}, nil
}

func pick(data map[string][]byte, items []corev1.KeyToPath) map[string][]byte {
	if len(items) == 0 {
		return data
	}
	picked := map[string][]byte{}
	for _, item := range items {
		picked[item.Path] = data[item.Key]
	}
	return picked
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make mount: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write mounted file: %w", err)
		}
	}
	return nil
}

func (k *Kubelet) environment(ctx context.Context, pod *corev1.Pod, container corev1.Container, move mover) ([]string, error) {
	env, err := k.credentials(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	for _, variable := range container.Env {
		value := move.path(variable.Value)
		if variable.ValueFrom != nil {
			ref := variable.ValueFrom.SecretKeyRef
			secret := &corev1.Secret{}
			if err := k.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}, secret); err != nil {
				return nil, fmt.Errorf("read secret of variable %s: %w", variable.Name, err)
			}
			value = string(secret.Data[ref.Key])
		}
		env = append(env, variable.Name+"="+value)
	}
	return env, nil
}

// credentials are the Secrets that the container takes its environment from as a
// whole; its own variables go before theirs, and so come after them.
func (k *Kubelet) credentials(ctx context.Context, pod *corev1.Pod, container corev1.Container) ([]string, error) {
	var env []string
	for _, source := range container.EnvFrom {
		secret := &corev1.Secret{}
		if err := k.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: source.SecretRef.Name}, secret); err != nil {
			return nil, fmt.Errorf("read secret of environment: %w", err)
		}
		for name, value := range secret.Data {
			env = append(env, name+"="+string(value))
		}
	}
	return env, nil
}
