package conformance

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

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func kills(ctx context.Context, f *fixture) (result, error) {
	want, err := f.runner.settled(ctx)
	if err != nil {
		return result{}, err
	}
	var moments []int
	for i, e := range want.run.events {
		switch e.(type) {
		case pluginv1.Started, pluginv1.Changed:
			moments = append(moments, i)
		}
	}
	if want.reason != "" || len(moments) == 0 {
		return notComparable(want, "no change can be made in this image"), nil
	}
	for _, moment := range moments {
		got, err := f.runner.another(func(f *fixture) (result, error) { return f.killed(ctx, want, moment) })
		if got.status != Pass || err != nil {
			return got, err
		}
	}
	return passed(), nil
}

// killed sends SIGKILL when the event with this number arrives.
func (f *fixture) killed(ctx context.Context, want reference, moment int) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	p.apply(ctx, f.applying(), 0, func(i int, _ pluginv1.Event) {
		if i == moment {
			p.kill()
		}
	}) // it fails, because its process is killed
	after := ""
	switch e := want.run.events[moment].(type) {
	case pluginv1.Started:
		after = fmt.Sprintf("after SIGKILL at started %q", e.Change.ID)
	case pluginv1.Changed:
		after = fmt.Sprintf("after SIGKILL at changed %q", e.ID)
	}
	if torn, err := f.torn(want); torn != "" || err != nil {
		return failed(finding{
			clause: "G-11", expected: "at any moment each file has its old or its new content, whole",
			got:   fmt.Sprintf("%s, /%s holds only the beginning of its new content", after, torn),
			cause: "the file is written under its own name; write a temporary file and rename it",
		}), err
	}
	return f.rerun(ctx, want, after)
}

// torn returns a file that is half written: it has neither the old nor the new content, but the beginning of the new.
func (f *fixture) torn(want reference) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(want.contents)) {
		e, err := readEntry(filepath.Join(f.root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		before, existed := want.before[name]
		if !e.mode.IsRegular() || existed && before.content == e.content || e.content == want.after[name].content {
			continue
		}
		data, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		if bytes.HasPrefix(want.contents[name], data) {
			return name, nil
		}
	}
	return "", nil
}

func twoAtOnce(ctx context.Context, f *fixture) (result, error) {
	want, err := f.runner.settled(ctx)
	if err != nil {
		return result{}, err
	}
	if want.reason != "" || len(want.run.changed()) == 0 {
		return notComparable(want, "no change can be made in this image"), nil
	}
	for _, processes := range []int{1, 2} {
		got, err := f.runner.another(func(f *fixture) (result, error) { return f.both(ctx, want, processes) })
		if got.status != Pass || err != nil {
			return got, err
		}
	}
	return passed(), nil
}

// both applies twice at the same time, in one process of the plugin or in two.
func (f *fixture) both(ctx context.Context, want reference, processes int) (result, error) {
	var plugins []*plugin
	for range processes {
		p, err := f.start(ctx)
		if err != nil {
			return result{}, err
		}
		plugins = append(plugins, p)
	}
	var wait sync.WaitGroup
	begin := make(chan struct{})
	runs := make([]applied, 2)
	for i := range runs {
		wait.Go(func() {
			<-begin
			runs[i] = plugins[i%processes].apply(ctx, f.applying(), 0, nil)
		})
	}
	close(begin)
	wait.Wait()
	where := map[int]string{1: "in one process", 2: "in two processes"}[processes]
	good := 0
	for _, run := range runs {
		err := run.failure()
		if err == nil {
			good++
			continue
		}
		if w := wrongAnswer(err, pluginv1.CodePrecondition, pluginv1.CodeRetry); w != "" {
			return failed(finding{
				clause: "G-17", expected: "two Applies of one document at once both succeed, or one is refused with Precondition or Retry",
				got: fmt.Sprintf("of two Applies at once %s, one %s", where, w), cause: raced,
			}), nil
		}
	}
	after := "after two Applies at once " + where
	if good == 0 {
		return f.rerun(ctx, want, after+", both refused,")
	}
	return f.compare(want, after, finding{clause: "G-17", cause: raced})
}

const raced = "two writers share a temporary file, or one renames what the other is writing; create it with O_EXCL and hold a " +
	"lock (flock) while writing"

func umasks(ctx context.Context, f *fixture) (result, error) {
	if !canSetUmask {
		return skipped("there is no umask on this operating system"), nil
	}
	want, err := f.runner.settled(ctx)
	if err != nil {
		return result{}, err
	}
	if want.reason != "" || len(want.run.changed()) == 0 {
		return notComparable(want, "no change can be made in this image"), nil
	}
	for _, umask := range []int{0o000, 0o077} {
		got, err := f.runner.another(func(f *fixture) (result, error) {
			p, err := f.startNew(ctx, umask)
			if err != nil {
				return result{}, err
			}
			if err := p.apply(ctx, f.applying(), 0, nil).failure(); err != nil {
				return failed(finding{
					clause: "G-11", expected: "Apply succeeds whatever the umask is",
					got: fmt.Sprintf("with the umask %03o, Apply fails: %v", umask, err), cause: masked,
				}), nil
			}
			return f.compare(want, fmt.Sprintf("with the umask %03o", umask), finding{clause: "G-11", cause: masked})
		})
		if got.status != Pass || err != nil {
			return got, err
		}
	}
	return passed(), nil
}

const masked = "the mode is given to open or mkdir alone, which apply the umask; set it with fchmod"
