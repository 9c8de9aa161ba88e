package ready

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/cri"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// maxLog bounds the log of a container in a description, in bytes.
const maxLog = 4 << 10

// restart is the shortest time that the kubelet waits before it starts a container again that has ended twice.
const restart = 10 * time.Second

// dial connects to the container runtime; socket is spec.node.criSocket.
func dial(ctx context.Context, m sdk.Machine, socket string) (*cri.Client, error) {
	return cri.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return m.FS.Dial(ctx, socketPath(socket)) })
}

func socketPath(socket string) string {
	return cmp.Or(strings.TrimPrefix(socket, "unix://"), "/run/containerd/containerd.sock")
}

// Service is the name of the service of the runtime: that of its socket, as of containerd.sock and crio.sock.
func Service(socket string) string {
	return strings.TrimSuffix(filepath.Base(socketPath(socket)), ".sock")
}

// Runtime is the claim of a document that runs the container runtime of spec.node.criSocket.
func Runtime(socket string) string { return claimOf(Service(socket) + ".service") }

func claimOf(unit string) string { return "unit:" + unit + "#running" }

// runtime asks the container runtime whether it can run containers.
func (c *checker) runtime(ctx context.Context) error {
	const hint = "put a ContainerRuntime document before this one; or see journalctl -u containerd"
	client, err := dial(ctx, c.m, c.s.Spec.Node.CRISocket)
	if err == nil {
		defer func() { _ = client.Close() }() // only asked
		var status cri.Status
		if status, err = client.Status(ctx, false); err == nil && !status.RuntimeReady.Met {
			err = errors.New("it is not ready: " + status.RuntimeReady.Reason)
		}
		c.images, _ = client.ImageDirectories(ctx) // a runtime need not say
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		return nil
	}
	message := "the container runtime does not answer: " + err.Error()
	service := Service(c.s.Spec.Node.CRISocket)
	need := Runtime(c.s.Spec.Node.CRISocket)
	switch state, err := c.m.Services.State(ctx, service); {
	case err == nil && state.Active == "activating":
		c.comes = "the service " + service + " is being started: " + message
		return nil
	case err == nil && state.ID != "": // a document claims the unit under its own name
		need = claimOf(state.ID)
	}
	c.need(need, "spec.node.criSocket", message, hint)
	return nil
}

// Images asks kubeadm which images the control plane needs, and the runtime for each, when none may be pulled. Config is
// kubeadm's configuration.
func Images(ctx context.Context, m sdk.Machine, socket string, config []byte) error {
	result, err := m.Commands.Run(ctx, machine.Command{
		Name: "kubeadm", Args: []string{"config", "images", "list", "--config", "/dev/stdin"}, Stdin: config,
	})
	if err != nil {
		return err
	}
	client, err := dial(ctx, m, socket)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // only asked
	var missing []sdk.Violation
	for _, image := range strings.Fields(string(result.Stdout)) {
		_, ok, err := client.ImageStatus(ctx, image)
		if err != nil {
			return err
		}
		if !ok {
			missing = append(missing, sdk.Violation{
				Field: "spec.node.imagePullPolicy", Message: "the image " + image + " is not on the machine, and none may be pulled",
				Hint: "ctr -n k8s.io images import FILE, then run again",
			})
		}
	}
	if len(missing) > 0 {
		return sdk.Preconditions(missing...)
	}
	return nil
}

// Containers describes the containers of the control plane. It returns those that do not run, or that have ended and run
// again for less than restart: one that always ends may run at this moment.
func Containers(ctx context.Context, m sdk.Machine, s settings.Settings, b *strings.Builder) (failed []Container) {
	client, err := dial(ctx, m, s.Spec.Node.CRISocket)
	if err != nil {
		fmt.Fprintf(b, "%v\n", err)
		return nil
	}
	defer func() { _ = client.Close() }() // only asked
	started := false
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if _, err := m.FS.Lstat("/etc/kubernetes/manifests/" + name + ".yaml"); err != nil {
			continue
		}
		statuses, err := client.ContainerStatuses(ctx, name+"-"+strings.ToLower(s.NodeName), name)
		switch {
		case err != nil:
			fmt.Fprintf(b, "%s: %v\n", name, err)
			continue
		case len(statuses) == 0:
			failed = append(failed, Container{Name: name, State: name + " has no container"})
			fmt.Fprintf(b, "%s: no container\n", name)
			continue
		}
		started = true
		for i, status := range statuses {
			fmt.Fprintf(b, "%s: %s, exit code %d, attempt %d, reason %s, message %q\n",
				name, status.State, status.ExitCode, status.Attempt, status.Reason, status.Message)
			if status.State == "exited" {
				failed = append(failed, ended(m, name, status, b))
				break
			}
			if i == 0 && status.State == "running" && time.Since(status.Started) >= restart {
				break
			}
		}
	}
	if len(failed) > 0 && !started {
		return []Container{{State: "the kubelet has started no container of it"}}
	}
	return failed
}

// ended describes a container that has ended, with the end of its log.
func ended(m sdk.Machine, name string, status cri.ContainerStatus, b *strings.Builder) Container {
	c := Container{Name: name, State: fmt.Sprintf("%s ends with exit code %d", name, status.ExitCode), Log: status.Message}
	if text, err := m.FS.ReadFile(status.LogPath); err == nil && len(text) > 0 { // otherwise the status alone
		c.Log = string(text[max(0, len(text)-maxLog):])
		fmt.Fprintf(b, "%s:\n%s\n", status.LogPath, c.Log)
	}
	return c
}
