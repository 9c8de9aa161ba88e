package changes

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// PlansFiles compares the files that a plan lists with those that Apply leaves, and plans on top of them.
func PlansFiles(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	want, err := f.Runner.Settled(ctx)
	if err != nil || want.Reason != "" {
		return rig.NotComparable(want, ""), err
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	r := f.Planning()
	d, err := p.CallDescribe(ctx, r, false)
	if err != nil || !slices.Contains(d.Capabilities, pluginv1.CapabilityFiles) {
		return rig.Skipped("the plugin does not have the capability %s", pluginv1.CapabilityFiles), nil //nolint:nilerr // describe reports it
	}
	r.ListFiles = true
	plan, err := p.CallPlan(ctx, r)
	if err != nil {
		return rig.Skipped("Plan fails, see %s", rig.OutcomeName), nil //nolint:nilerr // outcome reports it
	}
	if wrong := trees.Differences(want.After, predicted(want, plan), trees.Aspects{Modes: true, Owners: true}); len(wrong) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "P-50", Expected: "the files of the plan are those that Apply leaves, and changes that are listed do nothing else",
			Got:   "by the files of the plan, the tree after Apply would be another one:" + trees.List(wrong),
			Cause: "the list is made apart from the changes; make it by the code that makes them",
		}), nil
	}
	r.Files = plan.Files
	again, err := p.CallPlan(ctx, r)
	if err != nil {
		return rig.Failed(rig.Finding{
			Clause: "P-50", Expected: "a plan", Got: "on the files that it has listed itself, Plan " + process.WrongAnswer(err),
			Cause: "an entry of files is taken for something else than it says, such as an absent file for an empty one",
		}), nil
	}
	if len(again.Files) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "P-50", Expected: "on the files that Plan has listed itself, it lists none",
			Got:   "Plan lists " + again.Files[0].Path + " again",
			Cause: "a file is read from the machine although the request has it; read every file of the target by one way (with the SDK: Machine.FS)",
		}), nil
	}
	return rig.Passed(), nil
}

// predicted is the tree that a plan lists, beside what it does not list. It lists no file that a killed run left.
func predicted(want rig.Reference, plan pluginv1.Plan) trees.Tree {
	out := maps.Clone(want.After)
	if complete(plan) {
		out = maps.Clone(want.Before)
	}
	for _, file := range plan.Files {
		name := strings.TrimPrefix(file.Path, "/")
		if file.Absent {
			delete(out, name)
			continue
		}
		e := trees.Entry{Mode: file.Mode, UID: file.UID, GID: file.GID, Size: int64(len(file.Content)), Link: file.Link}
		switch {
		case file.Directory:
			e.Mode |= fs.ModeDir
		case file.Link != "":
			e.Mode = fs.ModeSymlink
		default:
			e.Content = sha256.Sum256(file.Content)
		}
		out[name] = e
	}
	maps.DeleteFunc(out, func(name string, _ trees.Entry) bool { return atomicfile.Leftover(path.Base(name)) })
	return out
}

// complete reports whether a plan lists all that it does in an image.
func complete(plan pluginv1.Plan) bool {
	return !slices.ContainsFunc(plan.Changes, func(c pluginv1.Change) bool { return !c.Listed && !c.NeedsLive })
}
