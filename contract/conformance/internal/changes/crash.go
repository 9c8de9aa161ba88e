// Package changes has the checks of what a plugin does to a machine, also when it is stopped, killed or run twice at once.
package changes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Kills is the check kill.
func Kills(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	want, err := f.Runner.Settled(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	var moments []int
	for i, e := range want.Run.Events {
		switch e.(type) {
		case pluginv1.Started, pluginv1.Changed:
			moments = append(moments, i)
		}
	}
	if want.Reason != "" || len(moments) == 0 {
		return rig.NotComparable(want, "no change can be made in this image"), nil
	}
	for _, moment := range moments {
		got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) { return killed(ctx, f, want, moment) })
		if got.Status != rig.Pass || err != nil {
			return got, err
		}
	}
	return rig.Passed(), nil
}

// killed sends SIGKILL when the event with this number arrives.
func killed(ctx context.Context, f *rig.Fixture, want rig.Reference, moment int) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	p.CallApply(ctx, f.Applying(), 0, func(i int, _ pluginv1.Event) {
		if i == moment {
			p.KillFamily()
		}
	}) // it fails, because its process is killed
	after := ""
	switch e := want.Run.Events[moment].(type) {
	case pluginv1.Started:
		after = fmt.Sprintf("after SIGKILL at started %q", e.Change.ID)
	case pluginv1.Changed:
		after = fmt.Sprintf("after SIGKILL at changed %q", e.ID)
	}
	if torn, err := torn(f, want); torn != "" || err != nil {
		return rig.Failed(rig.Finding{
			Clause: "G-11", Expected: "at any moment each file has its old or its new content, whole",
			Got:   fmt.Sprintf("%s, /%s holds only the beginning of its new content", after, torn),
			Cause: "the file is written under its own name; write a temporary file and rename it",
		}), err
	}
	return f.Rerun(ctx, want, after)
}

// torn returns a file that is half written: it has neither the old nor the new content, but the beginning of the new.
func torn(f *rig.Fixture, want rig.Reference) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(want.Contents)) {
		e, err := trees.ReadEntry(filepath.Join(f.Root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		before, existed := want.Before[name]
		if !e.Mode.IsRegular() || existed && before.Content == e.Content || e.Content == want.After[name].Content {
			continue
		}
		data, err := os.ReadFile(filepath.Join(f.Root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		if bytes.HasPrefix(want.Contents[name], data) {
			return name, nil
		}
	}
	return "", nil
}

// TwoAtOnce is the check two-at-once.
func TwoAtOnce(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	want, err := f.Runner.Settled(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	if want.Reason != "" || len(want.Run.Changed()) == 0 {
		return rig.NotComparable(want, "no change can be made in this image"), nil
	}
	for _, processes := range []int{1, 2} {
		got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) { return both(ctx, f, want, processes) })
		if got.Status != rig.Pass || err != nil {
			return got, err
		}
	}
	return rig.Passed(), nil
}

// both applies twice at the same time, in one process of the plugin or in two.
func both(ctx context.Context, f *rig.Fixture, want rig.Reference, processes int) (rig.Result, error) {
	var plugins []*process.Plugin
	for range processes {
		p, err := f.Start(ctx)
		if err != nil {
			return rig.Result{}, err
		}
		plugins = append(plugins, p)
	}
	var wait sync.WaitGroup
	begin := make(chan struct{})
	runs := make([]process.Applied, 2)
	for i := range runs {
		wait.Go(func() {
			<-begin
			runs[i] = plugins[i%processes].CallApply(ctx, f.Applying(), 0, nil)
		})
	}
	close(begin)
	wait.Wait()
	where := map[int]string{1: "in one process", 2: "in two processes"}[processes]
	good := 0
	for _, run := range runs {
		err := run.Failure()
		if err == nil {
			good++
			continue
		}
		if w := process.WrongAnswer(err, pluginv1.CodePrecondition, pluginv1.CodeRetry); w != "" {
			return rig.Failed(rig.Finding{
				Clause: "G-17", Expected: "two Applies of one document at once both succeed, or one is refused with Precondition or Retry",
				Got: fmt.Sprintf("of two Applies at once %s, one %s", where, w), Cause: raced,
			}), nil
		}
	}
	after := "after two Applies at once " + where
	if good == 0 {
		return f.Rerun(ctx, want, after+", both refused,")
	}
	return f.Compare(want, after, rig.Finding{Clause: "G-17", Cause: raced})
}

const raced = "two writers share a temporary file, or one renames what the other is writing; create it with O_EXCL and hold a " +
	"lock (flock) while writing"

// Umasks is the check umask.
func Umasks(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	if !process.CanSetUmask {
		return rig.Skipped("there is no umask on this operating system"), nil
	}
	want, err := f.Runner.Settled(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	if want.Reason != "" || len(want.Run.Changed()) == 0 {
		return rig.NotComparable(want, "no change can be made in this image"), nil
	}
	for _, umask := range []int{0o000, 0o077} {
		got, err := f.Runner.Another(func(f *rig.Fixture) (rig.Result, error) {
			p, err := f.StartNew(ctx, umask)
			if err != nil {
				return rig.Result{}, err
			}
			if err := p.CallApply(ctx, f.Applying(), 0, nil).Failure(); err != nil {
				return rig.Failed(rig.Finding{
					Clause: "G-11", Expected: "Apply succeeds whatever the umask is",
					Got: fmt.Sprintf("with the umask %03o, Apply fails: %v", umask, err), Cause: masked,
				}), nil
			}
			return f.Compare(want, fmt.Sprintf("with the umask %03o", umask), rig.Finding{Clause: "G-11", Cause: masked})
		})
		if got.Status != rig.Pass || err != nil {
			return got, err
		}
	}
	return rig.Passed(), nil
}

const masked = "the mode is given to open or mkdir alone, which apply the umask; set it with fchmod"
