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

// noCommand takes the census before and after: what a process has waited for shows in its own counters, so that no
// command is too short to be seen, and no tracing is needed.
func noCommand(ctx context.Context, b *bench) (finding, error) {
	if !canCount {
		return skipped("the children of a process cannot be counted on this operating system"), nil
	}
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	before := family(p.PID())
	if _, err := p.plan(ctx, b.planning()); err != nil && contractError(err) == nil {
		return finding{}, err
	}
	if family(p.PID()).grew(before) {
		return failed("Plan on an image root ran a command"), nil
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	var died *crash
	if errors.As(run.err, &died) && !protocolBroken(run.err) {
		return finding{}, run.err
	}
	if family(p.PID()).grew(before) {
		return failed("Apply on an image root ran a command: there is nothing in an image that may be run"), nil
	}
	return passed(), nil
}

// detour puts a link that leads out of the root in the place of something that the plugin writes.
type detour struct {
	name     string // below the root
	absolute bool   // else with as many .. as lead out
	file     bool   // else a directory
	inside   bool   // what the link says exists inside the root too
}

func (d detour) String() string {
	how := map[bool]string{true: "an absolute", false: "a relative"}[d.absolute]
	return fmt.Sprintf("/%s is %s link out of the root", d.name, how)
}

// mostDetours bounds what a case with many files costs.
const mostDetours = 12

func linksOut(ctx context.Context, b *bench) (finding, error) {
	want, err := b.trial.undisturbed(ctx)
	if err != nil {
		return finding{}, err
	}
	detours := detoursOf(want)
	if want.reason != "" || len(detours) == 0 {
		return notJudged(want, "it writes no file in a place that a link can take"), nil
	}
	for _, d := range detours[:min(len(detours), mostDetours)] {
		f, err := b.trial.fresh(func(b *bench) (finding, error) { return b.detoured(ctx, d) })
		if f.verdict != Pass || err != nil {
			return f, err
		}
	}
	return passed(), nil
}

// detoursOf lists the files that a run wrote, and their directories, where no link leads to them already.
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

// detoured applies with the detour in place. Whatever comes of it, what the link leads to outside stays as it is.
func (b *bench) detoured(ctx context.Context, d detour) (finding, error) {
	trap := filepath.Join(b.outside, "trap")
	if err := b.lay(d, trap); err != nil {
		return finding{}, err
	}
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	before, err := readTree(b.outside)
	if err != nil {
		return finding{}, err
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	var died *crash
	if errors.As(run.err, &died) && !protocolBroken(run.err) {
		return finding{}, run.err
	}
	after, err := readTree(b.outside)
	if err != nil {
		return finding{}, err
	}
	if l := differences(before, after, aspects{modes: true, owners: true, times: true}); len(l) > 0 {
		return failed("%s, and Apply followed it out:%s", d, list(l)).of("P-16"), nil
	}
	if e := contractError(run.failure()); e != nil && e.Code == pluginv1.CodeInternal && !protocolBroken(run.err) {
		return failed("%s, and Apply answers Internal instead of a refusal that says what to do: %v", d, e).of("G-15"), nil
	}
	return passed(), nil
}

// lay makes the trap outside, with what the link replaces in it, and the link.
func (b *bench) lay(d detour, trap string) error {
	place := filepath.Join(b.root, filepath.FromSlash(d.name))
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return err
	}
	if err := os.Rename(place, trap); errors.Is(err, fs.ErrNotExist) {
		if err := b.make(trap, d.file); err != nil {
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
		inside := filepath.Join(b.root, "outside", "trap") // where .. ends at the root
		if d.absolute {
			inside = filepath.Join(b.root, trap)
		}
		if err := os.MkdirAll(inside, 0o755); err != nil {
			return err
		}
	}
	return os.Symlink(target, place)
}

func (*bench) make(name string, file bool) error {
	if file {
		return write(name, []byte("not yours\n"), 0o644)
	}
	return errors.Join(os.Mkdir(name, 0o700), os.Chmod(name, 0o755))
}
