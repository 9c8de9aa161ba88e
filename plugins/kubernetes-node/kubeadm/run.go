package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/member"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/outcome"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/ready"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const (
	// grace is the time that kubeadm has to end, below the time that the host gives a plugin.
	grace = 10 * time.Second
	// explainTimeout bounds the collection of what explains a failure.
	explainTimeout = 10 * time.Second
)

// run runs kubeadm and shows its progress. Only init and join get the configuration and the files of the document. The
// context of the document is the limit.
func (n *node) run(ctx context.Context, p sdk.Progress, args ...string) error {
	if args[0] == "join" {
		for _, check := range []func(context.Context) error{n.skew, n.fits} {
			if err := check(ctx); err != nil {
				return err
			}
		}
	}
	command := machine.Command{Name: "kubeadm", Args: args, Timeout: 24 * time.Hour, Grace: grace}
	if args[0] != "reset" {
		if err := n.workFiles(); err != nil {
			return err
		}
		config := "/dev/stdin"
		if n.s.Windows {
			config = n.work(configFile)
		} else {
			command.Stdin = n.rendered.Config
		}
		command.Args = slices.Concat(args, []string{"--config", config})
		if len(args) == 1 {
			command.Args = append(command.Args, n.rendered.Flags...)
		}
	}
	redact := n.redactor()
	output := outcome.New(redact)
	command.Output = func(line string) {
		if text := output.Line(line); text != "" {
			p.Report(text)
		}
	}
	began := time.Now()
	_, err := n.m.Commands.Run(ctx, command)
	if emptied := n.empty(); err == nil || emptied != nil {
		return errors.Join(err, emptied)
	}
	if errors.Is(context.Cause(ctx), sdk.ErrStopped) || errors.Is(err, context.Canceled) {
		return err // the next run begins with what is left
	}
	run := outcome.Run{
		Command: args[0], Endpoint: n.endpoint(), Err: err, Duration: time.Since(began),
		Facts: map[string]string{"kubeadmVersion": n.kubeadm.String(), "kubernetesVersion": n.s.Version.String()},
		Safe:  func() bool { return n.safe(ctx) },
	}
	if args[0] != "reset" && !n.s.Windows {
		n.explain(ctx, redact, &run)
	}
	return output.Failure(run)
}

// skew refuses to join a control plane of a version that the node does not fit, because kubeadm checks that for control planes
// alone. Why there is no answer is for kubeadm to find out.
func (n *node) skew(ctx context.Context) error {
	control, ok := member.ServerVersion(ctx, n.endpoint())
	if want := n.s.Version; !ok || control.Major == want.Major && control.Minor >= want.Minor && control.Minor <= want.Minor+3 {
		return nil
	}
	return sdk.At(sdk.Precondition("the control plane is "+control.String()+
		": a node must not be newer, nor more than three minor versions older", "use the version of the control plane, with its kubeadm and kubelet"),
		"spec.kubernetesVersion")
}

// fits refuses to join a cluster with families that the machine does not forward, or whose kubelets do not start with its swap: kubeadm
// does not check the first, and waits for the second in vain. A plan does not ask the cluster.
func (n *node) fits(ctx context.Context) error {
	d := n.s.Spec.Discovery
	if d.Token == nil || n.s.Windows {
		return nil
	}
	s := n.s
	if s.Cluster = member.Configured(ctx, n.endpoint(), d.Token.Reveal(), d.CACertHashes); s.Cluster == nil {
		return nil
	}
	return ready.Cluster(ctx, n.m, s)
}

// endpoint is the HOST:PORT of the API server that a node asks to join, or that it creates.
func (n *node) endpoint() string {
	d := n.s.Spec.Discovery
	switch {
	case d == nil: // a machine that creates a cluster without a token
		return n.s.Spec.Cluster.Endpoint
	case d.Kubeconfig != nil:
		return member.Server(d.Kubeconfig.Reveal())
	}
	return cmp.Or(d.Endpoint, n.s.Spec.Cluster.Endpoint)
}

// explain adds which containers of the control plane have failed and why, and for the administrator their status and the log
// of the kubelet.
func (n *node) explain(ctx context.Context, redact outcome.Redactor, run *outcome.Run) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTimeout)
	defer cancel()
	var failed []ready.Container
	var b strings.Builder
	if n.s.ControlPlane() {
		failed = ready.Containers(ctx, n.m, n.s, &b)
	}
	log, err := n.m.Commands.Run(ctx, machine.Command{
		Name: "journalctl", Args: []string{"--unit", "kubelet", "--lines", "300", "--no-pager", "--output", "short-iso"},
	})
	why := ready.Container{Name: "kubelet"}
	if err == nil {
		lines := strings.SplitAfter(string(log.Stdout), "\n")
		why.Log = outcome.OfKubelet(string(log.Stdout), !n.s.ControlPlane())
		fmt.Fprintf(&b, "journalctl --unit kubelet:\n%s", strings.Join(lines[max(0, len(lines)-61):], "")) // the last is empty
	}
	var states []string
	for _, c := range failed {
		states = append(states, c.State)
		if c.Log != "" && why.Name == "kubelet" { // the first: a container depends on those before it
			why = c
		}
	}
	if len(states) > 0 {
		run.Pods = ": " + strings.Join(states, ", ")
	}
	if line := outcome.LastError(redact.Text(why.Log)); line != "" {
		run.Cause = why.Name + ": " + line
	}
	run.Detail = redact.Text(b.String())
}
