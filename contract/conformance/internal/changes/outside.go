package changes

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
)

// startAside starts a process with an empty /var/tmp beside the root of the fixture, where root can give it one: other programs
// write to that of this machine all the time.
func startAside(ctx context.Context, f *rig.Fixture) (*process.Plugin, error) {
	const private = `mount --bind "$1" /var/tmp && exec "$2"`
	argv := []string{f.Runner.Binary}
	_, missing := os.Stat("/var/tmp")
	if os.Geteuid() == 0 && missing == nil && !strings.HasPrefix(f.Dir, "/var/tmp/") && !strings.HasPrefix(argv[0], "/var/tmp/") &&
		exec.CommandContext(ctx, "unshare", "--mount", "true").Run() == nil {
		aside := filepath.Join(f.Dir, "var-tmp")
		if err := errors.Join(os.Mkdir(aside, 0o700), os.Chmod(aside, 0o777|os.ModeSticky)); err != nil {
			return nil, err
		}
		argv = []string{"unshare", "--mount", "sh", "-c", private, "sh", aside, argv[0]}
	}
	p, err := f.Runner.StartAs(ctx, process.UsualUmask, argv)
	if err == nil {
		p.Shared = false
	}
	return f.Use(p, err)
}

// NothingOutside compares what is beside the root, and the paths of this machine that a plugin without the root would
// change, from before the plugin starts. It removes nothing there, because other programs may own it.
func NothingOutside(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	places, err := f.Runner.Case.Places()
	if err != nil {
		return rig.Result{}, err
	}
	machineBefore := testcase.Observe(places)
	p, err := startAside(ctx, f)
	if err != nil {
		return rig.Result{}, err
	}
	before, err := readTrees(f.Dir, p.Home, "root", "state")
	if err != nil {
		return rig.Result{}, err
	}
	if _, err := p.CallDescribe(ctx, f.Planning(), false); errors.As(err, new(*process.CrashError)) {
		return rig.Result{}, err
	}
	if _, err := p.CallPlan(ctx, f.Planning()); err != nil && process.ContractError(err) == nil {
		return rig.Result{}, err
	}
	if err := p.CallApply(ctx, f.Applying(), 0, nil).Crashed(); err != nil {
		return rig.Result{}, err
	}
	after, err := readTrees(f.Dir, p.Home, "root", "state")
	if err != nil {
		return rig.Result{}, err
	}
	if d := machineBefore.Differences(testcase.Observe(places)); len(d) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "P-16", Expected: "on behalf of an image, nothing outside of its root changes",
			Got: "on this machine, outside of the root, this changed while the plugin planned and applied:" + trees.List(d),
			Cause: "a path without the root of the request before it; correct the plugin, and clean up this machine by hand. If " +
				"another program made the change, run again",
		}), nil
	}
	if d := trees.Differences(before, after, trees.Aspects{Modes: true, Owners: true, Times: true}); len(d) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "P-16", Expected: "on behalf of an image, nothing outside of its root changes",
			Got:   "beside the root, Plan or Apply wrote (home is the working and home directory, var-tmp is /var/tmp):" + trees.List(d),
			Cause: "a relative path, a cache or log in the home directory, or a path that is made by appending to the root",
		}), nil
	}
	return rig.Passed(), nil
}
