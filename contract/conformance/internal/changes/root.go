package changes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// NoCommand compares the processes before and after a call. A child that a process has waited for changes its counters, so
// that no command is too short to be noticed, and no tracing is needed.
func NoCommand(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	if !process.CanCount {
		return rig.Skipped("the children of a process cannot be counted on this operating system"), nil
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	before := process.Family(p.PID())
	if _, err := p.CallPlan(ctx, f.Planning()); err != nil && process.ContractError(err) == nil {
		return rig.Result{}, err
	}
	wrong := rig.Finding{
		Clause: p.Role.Harmless("G-15"), Expected: "on behalf of an image, the plugin runs no command",
		Cause: "a command of the machine, such as systemctl or the checker of a daemon, that is run without a test for an empty root",
	}
	if process.Family(p.PID()).Grew(before) {
		wrong.Got = p.Role.Call() + " on an image root ran a command"
		return rig.Failed(wrong), nil
	}
	if err := p.CallApply(ctx, f.Applying(), 0, nil).Crashed(); err != nil {
		return rig.Result{}, err
	}
	if process.Family(p.PID()).Grew(before) {
		wrong.Got = "Apply on an image root ran a command"
		return rig.Failed(wrong), nil
	}
	return rig.Passed(), nil
}

// detour is a link out of the root in the place of something that the plugin writes.
type detour struct {
	name     string // below the root
	absolute bool   // else with as many .. as lead out
	file     bool   // else a directory
	inside   bool   // the target of the link exists inside the root too
}

func (d detour) String() string {
	how := map[bool]string{true: "an absolute", false: "a relative"}[d.absolute]
	return fmt.Sprintf("/%s is %s link out of the root", d.name, how)
}

// mostDetours limits the time of a case with many files.
const mostDetours = 12

// LinksOut is the check links-out.
func LinksOut(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	want, err := f.Runner.Undisturbed(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	detours := detoursOf(want)
	if want.Reason != "" || len(detours) == 0 {
		return rig.NotComparable(want, "it writes no file in whose place a link can be"), nil
	}
	for _, d := range detours[:min(len(detours), mostDetours)] {
		got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) { return detoured(ctx, f, d) })
		if got.Status != rig.Pass || err != nil {
			return got, err
		}
	}
	return rig.Passed(), nil
}

// detoursOf returns links in the place of each file that a run wrote and of their directories, unless a link leads there
// already.
func detoursOf(r rig.Reference) []detour {
	var files, directories []string
	for name := range r.Contents {
		if throughLink(r.Before, name) {
			continue
		}
		files = append(files, name)
		if above := path.Dir(name); above != "." && !slices.Contains(directories, above) {
			directories = append(directories, above)
		}
	}
	slices.Sort(files)
	slices.Sort(directories)
	var out []detour
	for _, absolute := range []bool{true, false} {
		for _, name := range directories {
			out = append(out, detour{name, absolute, false, false}, detour{name, absolute, false, true})
		}
		for _, name := range files {
			out = append(out, detour{name, absolute, true, false})
		}
	}
	return out
}

func throughLink(t trees.Tree, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if e, ok := t[name]; ok && e.Mode.Type() == fs.ModeSymlink {
			return true
		}
	}
	return false
}

// detoured applies with the detour in place. Whatever the answer is, the target of the link outside stays as it is.
func detoured(ctx context.Context, f *rig.Fixture, d detour) (rig.Result, error) {
	trap := filepath.Join(f.Outside, "trap")
	if err := lay(f, d, trap); err != nil {
		return rig.Result{}, err
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	before, err := trees.ReadTree(f.Outside)
	if err != nil {
		return rig.Result{}, err
	}
	run := p.CallApply(ctx, f.Applying(), 0, nil)
	if err := run.Crashed(); err != nil {
		return rig.Result{}, err
	}
	after, err := trees.ReadTree(f.Outside)
	if err != nil {
		return rig.Result{}, err
	}
	if l := trees.Differences(before, after, trees.Aspects{Modes: true, Owners: true, Times: true}); len(l) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "P-16", Expected: "links of the image are followed inside the root",
			Got: fmt.Sprintf("%s, and Apply followed it out:%s", d, trees.List(l)),
			Cause: "a path that is made by putting the root before it; resolve it inside the root (with the SDK: Machine.FS; " +
				"openat2 with RESOLVE_IN_ROOT)",
		}), nil
	}
	if e := process.ContractError(run.Failure()); e != nil && e.Code == pluginv1.CodeInternal && !process.ProtocolBroken(run.Err) {
		return rig.Failed(rig.Finding{
			Clause: "G-15", Expected: "Apply follows the link inside the root, or refuses it with Precondition",
			Got:   fmt.Sprintf("%s, and Apply answers Internal instead of a refusal with a remedy: %v", d, e),
			Cause: "an error of the file system is passed on as it comes",
		}), nil
	}
	return rig.Passed(), nil
}

// lay moves what the link replaces to the trap outside, or makes the trap, and makes the link.
func lay(f *rig.Fixture, d detour, trap string) error {
	place := filepath.Join(f.Root, filepath.FromSlash(d.name))
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if err := os.Rename(place, trap); errors.Is(err, fs.ErrNotExist) {
		if err := putTrap(f, trap, d.file); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	target := trap
	if !d.absolute {
		// From the directory of the link up to the root, and one more.
		target = strings.Repeat("../", strings.Count(d.name, "/")+1) + "outside/trap"
	}
	if d.inside {
		inside := filepath.Join(f.Root, "outside", "trap") // where .. ends at the root
		if d.absolute {
			inside = filepath.Join(f.Root, trap)
		}
		if err := os.MkdirAll(inside, 0o755); err != nil {
			return err
		}
	}
	return os.Symlink(target, place)
}

func putTrap(_ *rig.Fixture, name string, file bool) error {
	if file {
		return trees.Write(name, []byte("not yours\n"), 0o644)
	}
	return errors.Join(os.Mkdir(name, 0o700), os.Chmod(name, 0o755))
}
