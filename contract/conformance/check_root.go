package conformance

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

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// noCommand compares the processes before and after a call. A child that a process has waited for changes its counters, so
// that no command is too short to be noticed, and no tracing is needed.
func noCommand(ctx context.Context, f *fixture) (result, error) {
	if !canCount {
		return skipped("the children of a process cannot be counted on this operating system"), nil
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	before := family(p.PID())
	if _, err := p.plan(ctx, f.planning()); err != nil && contractError(err) == nil {
		return result{}, err
	}
	wrong := finding{
		clause: p.role.harmless("G-15"), expected: "on behalf of an image, the plugin runs no command",
		cause: "a command of the machine, such as systemctl or the checker of a daemon, that is run without a test for an empty root",
	}
	if family(p.PID()).grew(before) {
		wrong.got = p.role.call() + " on an image root ran a command"
		return failed(wrong), nil
	}
	if err := p.apply(ctx, f.applying(), 0, nil).crashed(); err != nil {
		return result{}, err
	}
	if family(p.PID()).grew(before) {
		wrong.got = "Apply on an image root ran a command"
		return failed(wrong), nil
	}
	return passed(), nil
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

func linksOut(ctx context.Context, f *fixture) (result, error) {
	want, err := f.runner.undisturbed(ctx)
	if err != nil {
		return result{}, err
	}
	detours := detoursOf(want)
	if want.reason != "" || len(detours) == 0 {
		return notComparable(want, "it writes no file in whose place a link can be"), nil
	}
	for _, d := range detours[:min(len(detours), mostDetours)] {
		got, err := f.runner.another(func(f *fixture) (result, error) { return f.detoured(ctx, d) })
		if got.status != Pass || err != nil {
			return got, err
		}
	}
	return passed(), nil
}

// detoursOf returns links in the place of each file that a run wrote and of their directories, unless a link leads there
// already.
func detoursOf(r reference) []detour {
	var files, directories []string
	for name := range r.contents {
		if throughLink(r.before, name) {
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

func throughLink(t tree, name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if e, ok := t[name]; ok && e.mode.Type() == fs.ModeSymlink {
			return true
		}
	}
	return false
}

// detoured applies with the detour in place. Whatever the answer is, the target of the link outside stays as it is.
func (f *fixture) detoured(ctx context.Context, d detour) (result, error) {
	trap := filepath.Join(f.outside, "trap")
	if err := f.lay(d, trap); err != nil {
		return result{}, err
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	before, err := readTree(f.outside)
	if err != nil {
		return result{}, err
	}
	run := p.apply(ctx, f.applying(), 0, nil)
	if err := run.crashed(); err != nil {
		return result{}, err
	}
	after, err := readTree(f.outside)
	if err != nil {
		return result{}, err
	}
	if l := differences(before, after, aspects{modes: true, owners: true, times: true}); len(l) > 0 {
		return failed(finding{
			clause: "P-16", expected: "links of the image are followed inside the root",
			got: fmt.Sprintf("%s, and Apply followed it out:%s", d, list(l)),
			cause: "a path that is made by putting the root before it; resolve it inside the root (with the SDK: Machine.FS; " +
				"openat2 with RESOLVE_IN_ROOT)",
		}), nil
	}
	if e := contractError(run.failure()); e != nil && e.Code == pluginv1.CodeInternal && !protocolBroken(run.err) {
		return failed(finding{
			clause: "G-15", expected: "Apply follows the link inside the root, or refuses it with Precondition",
			got:   fmt.Sprintf("%s, and Apply answers Internal instead of a refusal with a remedy: %v", d, e),
			cause: "an error of the file system is passed on as it comes",
		}), nil
	}
	return passed(), nil
}

// lay moves what the link replaces to the trap outside, or makes the trap, and makes the link.
func (f *fixture) lay(d detour, trap string) error {
	place := filepath.Join(f.root, filepath.FromSlash(d.name))
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if err := os.Rename(place, trap); errors.Is(err, fs.ErrNotExist) {
		if err := f.make(trap, d.file); err != nil {
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
		inside := filepath.Join(f.root, "outside", "trap") // where .. ends at the root
		if d.absolute {
			inside = filepath.Join(f.root, trap)
		}
		if err := os.MkdirAll(inside, 0o755); err != nil {
			return err
		}
	}
	return os.Symlink(target, place)
}

func (*fixture) make(name string, file bool) error {
	if file {
		return write(name, []byte("not yours\n"), 0o644)
	}
	return errors.Join(os.Mkdir(name, 0o700), os.Chmod(name, 0o755))
}
