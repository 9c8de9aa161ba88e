package conformance

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// plansFiles compares the files that a plan lists with those that Apply leaves, and plans on top of them.
func plansFiles(ctx context.Context, f *fixture) (result, error) {
	want, err := f.runner.settled(ctx)
	if err != nil || want.reason != "" {
		return notComparable(want, ""), err
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	r := f.planning()
	d, err := p.describe(ctx, r, false)
	if err != nil || !slices.Contains(d.Capabilities, pluginv1.CapabilityFiles) {
		return skipped("the plugin does not have the capability %s", pluginv1.CapabilityFiles), nil //nolint:nilerr // describe reports it
	}
	r.ListFiles = true
	plan, err := p.plan(ctx, r)
	if err != nil {
		return skipped("Plan fails, see %s", outcomeName), nil //nolint:nilerr // outcome reports it
	}
	if wrong := differences(want.after, predicted(want, plan), aspects{modes: true, owners: true}); len(wrong) > 0 {
		return failed(finding{
			clause: "P-50", expected: "the files of the plan are those that Apply leaves, and changes that are listed do nothing else",
			got:   "by the files of the plan, the tree after Apply would be another one:" + list(wrong),
			cause: "the list is made apart from the changes; make it by the code that makes them",
		}), nil
	}
	r.Files = plan.Files
	again, err := p.plan(ctx, r)
	if err != nil {
		return failed(finding{
			clause: "P-50", expected: "a plan", got: "on the files that it has listed itself, Plan " + wrongAnswer(err),
			cause: "an entry of files is taken for something else than it says, such as an absent file for an empty one",
		}), nil
	}
	if len(again.Files) > 0 {
		return failed(finding{
			clause: "P-50", expected: "on the files that Plan has listed itself, it lists none",
			got:   "Plan lists " + again.Files[0].Path + " again",
			cause: "a file is read from the machine although the request has it; read every file of the target by one way (with the SDK: Machine.FS)",
		}), nil
	}
	return passed(), nil
}

// predicted is the tree that a plan lists, beside what it does not list. It lists no file that a killed run left.
func predicted(want reference, plan pluginv1.Plan) tree {
	out := maps.Clone(want.after)
	if complete(plan) {
		out = maps.Clone(want.before)
	}
	for _, file := range plan.Files {
		name := strings.TrimPrefix(file.Path, "/")
		if file.Absent {
			delete(out, name)
			continue
		}
		e := entry{mode: file.Mode, uid: file.UID, gid: file.GID, size: int64(len(file.Content)), link: file.Link}
		switch {
		case file.Directory:
			e.mode |= fs.ModeDir
		case file.Link != "":
			e.mode = fs.ModeSymlink
		default:
			e.content = sha256.Sum256(file.Content)
		}
		out[name] = e
	}
	maps.DeleteFunc(out, func(name string, _ entry) bool { return atomicfile.Leftover(path.Base(name)) })
	return out
}

// complete reports whether a plan lists all that it does in an image.
func complete(plan pluginv1.Plan) bool {
	return !slices.ContainsFunc(plan.Changes, func(c pluginv1.Change) bool { return !c.Listed && !c.NeedsLive })
}
