package conformance

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// startAside starts a process with an empty /var/tmp beside the root of the fixture, where root can give it one: other programs
// write to that of this machine all the time.
func (f *fixture) startAside(ctx context.Context) (*plugin, error) {
	const private = `mount --bind "$1" /var/tmp && exec "$2"`
	argv := []string{f.runner.binary}
	_, missing := os.Stat("/var/tmp")
	if os.Geteuid() == 0 && missing == nil && !strings.HasPrefix(f.dir, "/var/tmp/") && !strings.HasPrefix(argv[0], "/var/tmp/") &&
		exec.CommandContext(ctx, "unshare", "--mount", "true").Run() == nil {
		aside := filepath.Join(f.dir, "var-tmp")
		if err := errors.Join(os.Mkdir(aside, 0o700), os.Chmod(aside, 0o777|os.ModeSticky)); err != nil {
			return nil, err
		}
		argv = []string{"unshare", "--mount", "sh", "-c", private, "sh", aside, argv[0]}
	}
	p, err := f.runner.startAs(ctx, usualUmask, argv)
	if err == nil {
		p.shared = false
	}
	return f.use(p, err)
}

// nothingOutside compares what is beside the root, and the paths of this machine that a plugin without the root would
// change, from before the plugin starts. It removes nothing there, because other programs may own it.
func nothingOutside(ctx context.Context, f *fixture) (result, error) {
	places, err := f.runner.c.places()
	if err != nil {
		return result{}, err
	}
	machineBefore := observe(places)
	p, err := f.startAside(ctx)
	if err != nil {
		return result{}, err
	}
	before, err := readTrees(f.dir, p.home, "root", "state")
	if err != nil {
		return result{}, err
	}
	if _, err := p.describe(ctx, f.planning(), false); errors.As(err, new(*crash)) {
		return result{}, err
	}
	if _, err := p.plan(ctx, f.planning()); err != nil && contractError(err) == nil {
		return result{}, err
	}
	if err := p.apply(ctx, f.applying(), 0, nil).crashed(); err != nil {
		return result{}, err
	}
	after, err := readTrees(f.dir, p.home, "root", "state")
	if err != nil {
		return result{}, err
	}
	if d := machineBefore.differences(observe(places)); len(d) > 0 {
		return failed(finding{
			clause: "P-16", expected: "on behalf of an image, nothing outside of its root changes",
			got: "on this machine, outside of the root, this changed while the plugin planned and applied:" + list(d),
			cause: "a path without the root of the request before it; correct the plugin, and clean up this machine by hand. If " +
				"another program made the change, run again",
		}), nil
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		return failed(finding{
			clause: "P-16", expected: "on behalf of an image, nothing outside of its root changes",
			got:   "beside the root, Plan or Apply wrote (home is the working and home directory, var-tmp is /var/tmp):" + list(d),
			cause: "a relative path, a cache or log in the home directory, or a path that is made by appending to the root",
		}), nil
	}
	return passed(), nil
}
