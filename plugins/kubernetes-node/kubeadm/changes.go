package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/member"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/outcome"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/ready"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// join returns the change that makes the machine a node.
func (n *node) join() *sdk.Change {
	what := map[string]string{
		settings.Init: "create a cluster, as its first control plane",
		settings.Join: "join a cluster as a control plane", settings.Worker: "join a cluster as a worker",
	}
	command := n.command()
	return &sdk.Change{
		ID: "kubeadm:" + command, Summary: what[n.s.Spec.Role] + " (kubeadm " + command + ")",
		NeedsLive: true, Interruptible: true,
		Do: func(ctx context.Context, p sdk.Progress) error {
			have, err := member.Observe(n.m, n.s.Spec.Cluster.CertificatesDir)
			if err != nil {
				return err
			}
			begun := member.Begun{Identity: n.identity, Settings: n.fingerprint, Foreign: len(have.Others(n.own())) > 0}
			if err := n.intent.Begin(begun); err != nil {
				return err
			}
			if err := n.run(ctx, p, command); err != nil {
				return errors.Join(err, n.untouched())
			}
			if err := n.end(); err != nil || n.s.Windows {
				return err
			}
			other, err := ready.InForce(ctx, n.m, n.s)
			if err == nil && len(other) > 0 {
				err = sdk.Preconditions(other...)
			}
			return err
		},
	}
}

// untouched ends the intent of a kubeadm that has refused before it changed anything.
func (n *node) untouched() error {
	have, err := member.Observe(n.m, n.s.Spec.Cluster.CertificatesDir)
	if err != nil || len(have.Left) > 0 {
		return err
	}
	begun, err := n.intent.Load()
	if err != nil || begun == nil || !begun.Foreign && len(have.Others(n.own())) > 0 {
		return err
	}
	return n.intent.End()
}

// finish returns the change that does what an interrupted kubeadm had left to do on a machine that is the node already: kubeadm waits for
// the kubelet after that has its certificate, and for the API server of a cluster that it creates.
func (n *node) finish() *sdk.Change {
	change := &sdk.Change{
		ID: "kubeadm:finish", Summary: "remove the credentials of an interrupted kubeadm join", NeedsLive: true, Interruptible: true,
	}
	if n.s.Spec.Role == settings.Init {
		change.Summary = "install the add-ons that an interrupted kubeadm init did not (kubeadm init phase addon all)"
	}
	change.Do = func(ctx context.Context, p sdk.Progress) error {
		if n.s.Spec.Role == settings.Init {
			if err := n.run(ctx, p, "init", "phase", "addon", "all"); err != nil {
				return err
			}
		} else if err := n.healthy(ctx, p); err != nil {
			return err
		}
		return n.end()
	}
	return change
}

// healthy waits for the kubelet. The log of one that does not become healthy explains the error. What was for kubeadm is removed before.
func (n *node) healthy(ctx context.Context, p sdk.Progress) error {
	err := n.empty()
	if err == nil {
		err = ready.Kubelet(ctx, p, n.m, n.s)
	}
	if err == nil || context.Cause(ctx) != nil || n.s.Windows {
		return err
	}
	var run outcome.Run
	n.explain(ctx, n.redactor(), &run)
	return sdk.WithDetail(err, outcome.Detail(run.Cause, run.Detail))
}

// end removes the credentials that an interrupted kubeadm leaves, records what made the node, and ends the intent.
func (n *node) end() error {
	if err := n.empty(); err != nil {
		return err
	}
	if err := n.m.State.Save(madeBy, []byte(n.fingerprint)); err != nil {
		return err
	}
	if err := n.m.FS.Remove(member.Path(n.m.Target.OS, "/etc/kubernetes/bootstrap-kubelet.conf")); err != nil {
		return err
	}
	return n.intent.End()
}

// reset returns the change that removes what an interrupted run left.
func (n *node) reset() *sdk.Change {
	return &sdk.Change{
		ID: "kubeadm:reset", Summary: "remove what an interrupted kubeadm " + n.command() + " left (kubeadm reset)",
		Diff:      "An earlier run ended while kubeadm was at work, or with other settings. No other machine has joined since.\n",
		NeedsLive: true,
		Do: func(ctx context.Context, p sdk.Progress) error {
			if err := n.alone(ctx); err != nil {
				return err
			}
			if err := n.intent.Begin(member.Begun{Identity: n.identity, Resetting: true}); err != nil {
				return err
			}
			args := []string{"reset", "--force", "--cert-dir", n.s.Spec.Cluster.CertificatesDir}
			if socket := n.s.Spec.Node.CRISocket; socket != "" {
				args = append(args, "--cri-socket", socket)
			}
			return n.run(ctx, p, args...)
		},
	}
}

// alone proves that a reset takes the machine out of no cluster that others use. A worker has nothing that others use, and a further control
// plane is in no cluster before its kubelet starts.
func (n *node) alone(ctx context.Context) error {
	if n.s.Spec.Role != settings.Init {
		return nil
	}
	return member.Alone(ctx, n.m, n.s.NodeName, n.etcdDir(), n.s.Spec.Cluster.CertificatesDir)
}

func (n *node) etcdDir() string {
	etcd := n.s.Spec.Etcd
	switch {
	case etcd != nil && etcd.External != nil:
		return ""
	case etcd != nil && etcd.Local != nil:
		return cmp.Or(etcd.Local.DataDir, "/var/lib/etcd")
	}
	return "/var/lib/etcd"
}

// modes returns the change that restricts files of kubeadm to the modes of the profiles. With again kubeadm is to run first.
func (n *node) modes(again bool) (*sdk.Change, error) {
	wide, err := n.restrict(func(string, fs.FileMode) error { return nil })
	if err != nil || wide == 0 && (!again || len(n.s.Modes) == 0) {
		return nil, err
	}
	return &sdk.Change{
		ID: "modes", Summary: "restrict the modes of files of Kubernetes", NeedsLive: true,
		Do: func(context.Context, sdk.Progress) error {
			_, err := n.restrict(n.m.FS.Chmod)
			return err
		},
	}, nil
}

// restrict calls set for each file that exists with permissions beyond its mode, and counts them.
func (n *node) restrict(set func(string, fs.FileMode) error) (wide int, err error) {
	for _, file := range n.s.Modes {
		info, err := n.m.FS.Stat(file.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode.Perm()&^file.Mode != 0 {
			wide++
			err = set(file.Path, file.Mode)
		}
		if err != nil {
			return wide, err
		}
	}
	return wide, nil
}
