package main

import (
	"context"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/member"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/ready"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/render"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// plan returns what is missing: the files, and kubeadm unless the machine is the node.
func plan(ctx context.Context, m sdk.Machine, doc v1alpha1.KubernetesNode) (sdk.Plan, error) {
	s, violations, err := settings.Resolve(m, doc)
	if len(violations) > 0 {
		return sdk.Plan{}, sdk.InvalidConfig(violations...)
	}
	m.Claim("node:kubernetes", "metadata.name", doc.Metadata.Name) // a machine is one node, so two documents never agree
	if err != nil {
		return sdk.Plan{}, err
	}
	claim(m, s)
	n := newNode(m, s)
	n.safe = func(ctx context.Context) bool {
		_, err := n.observe(ctx, new(sdk.Plan))
		return err == nil
	}
	if n.fingerprint, err = fingerprint(doc.Spec); err != nil {
		return sdk.Plan{}, err
	}
	var result sdk.Plan
	step := member.Run
	if !m.Offline() {
		if step, err = n.observe(ctx, &result); err != nil {
			return sdk.Plan{Warnings: s.Warnings}, err
		}
	}
	if step == member.Reset {
		result.Add(n.reset())
	}
	if n.s.Spec.Node.Swap == "off" {
		if err := n.swapOff(ctx, &result); err != nil {
			return sdk.Plan{}, err
		}
	}
	again := step == member.Reset // kubeadm reset removes files that match now
	if err := n.files(&result, s.Files, false, again); err != nil {
		return sdk.Plan{}, err
	}
	switch step {
	case member.Finish:
		result.Add(n.finish())
	case member.Run, member.Reset:
		result.Warnings = append(result.Warnings, s.Warnings...)
		if err := n.files(&result, s.Credentials, false, again); err != nil {
			return sdk.Plan{}, err
		}
		result.Add(n.join())
		result.Needs = []string{ready.Runtime(s.Spec.Node.CRISocket)}
	}
	modes, err := n.modes(step != member.Nothing)
	if err != nil {
		return sdk.Plan{}, err
	}
	result.Add(modes)
	return result, n.files(&result, s.Files, true, again)
}

// observe finds out what is left to do, and what of the machine would make it fail.
func (n *node) observe(ctx context.Context, result *sdk.Plan) (member.Step, error) {
	have, err := member.Observe(n.m, n.s.Spec.Cluster.CertificatesDir)
	if err != nil {
		return 0, err
	}
	begun, err := n.intent.Load()
	if err != nil {
		return 0, err
	}
	step, warnings, err := member.Decide(n.identity, n.fingerprint, have, begun, n.own(), n.m.State.Path(n.intent.Name))
	result.Warnings = append(result.Warnings, warnings...)
	if err != nil {
		return step, err
	}
	if step == member.Nothing {
		warnings, err = n.changed()
		result.Warnings = append(result.Warnings, warnings...)
		if err != nil || n.s.Windows {
			return step, err
		}
		other, err := ready.InForce(ctx, n.m, n.s)
		for _, v := range other {
			result.Warn(v.Field, v.Message+"; "+v.Hint)
		}
		return step, err
	}
	if step == member.Reset {
		if err := n.alone(ctx); err != nil {
			return 0, err
		}
	}
	if step == member.Finish && n.s.Spec.Role == settings.Worker {
		return step, nil
	}
	kubeadm, warnings, err := ready.Check(ctx, n.m, n.s, step == member.Run)
	result.Warnings = append(result.Warnings, warnings...)
	if err != nil {
		return 0, err
	}
	rendered, unsupported := render.Render(n.s, kubeadm)
	if err := sdk.UnsupportedFields(unsupported...); err != nil {
		return 0, err
	}
	n.kubeadm, n.rendered = kubeadm, rendered
	if n.s.Spec.Node.ImagePullPolicy == "Never" && n.s.Spec.Role == settings.Init && step != member.Finish {
		return step, ready.Images(ctx, n.m, n.s.Spec.Node.CRISocket, rendered.Config)
	}
	return step, nil
}

// files adds the changes of files. With again a file is written even if it matches now.
func (n *node) files(result *sdk.Plan, files []settings.File, after, again bool) error {
	for _, file := range files {
		if file.After != after {
			continue
		}
		m := n.m.Field(file.Field)
		change, err := sdk.File(m, file.FileSpec)
		if err != nil {
			return sdk.At(err, file.Field)
		}
		if change == nil && again {
			change = &sdk.Change{
				ID: "file:" + file.Path, Summary: "create " + file.Path + " again",
				Do: func(ctx context.Context, p sdk.Progress) error {
					change, err := sdk.File(m, file.FileSpec)
					if err != nil || change == nil {
						return err
					}
					return change.Do(ctx, p)
				},
			}
		}
		result.Add(change)
	}
	return nil
}
