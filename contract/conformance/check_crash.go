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

func kills(ctx context.Context, b *bench) (finding, error) {
	want, err := b.trial.settled(ctx)
	if err != nil {
		return finding{}, err
	}
	var moments []int
	for i, e := range want.run.events {
		switch e.(type) {
		case pluginv1.Started, pluginv1.Changed:
			moments = append(moments, i)
		}
	}
	if want.reason != "" || len(moments) == 0 {
		return notJudged(want, "no change can be made in this image"), nil
	}
	for _, moment := range moments {
		f, err := b.trial.fresh(func(b *bench) (finding, error) { return b.killed(ctx, want, moment) })
		if f.verdict != Pass || err != nil {
			return f, err
		}
	}
	return passed(), nil
}

// killed sends SIGKILL when the event with this number arrives.
func (b *bench) killed(ctx context.Context, want reference, moment int) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	p.apply(ctx, b.applying(), 0, func(i int, _ pluginv1.Event) {
		if i == moment {
			p.kill()
		}
	}) // how it ends does not matter: the process is gone
	after := ""
	switch e := want.run.events[moment].(type) {
	case pluginv1.Started:
		after = fmt.Sprintf("after SIGKILL at started %q", e.Change.ID)
	case pluginv1.Changed:
		after = fmt.Sprintf("after SIGKILL at changed %q", e.ID)
	}
	if torn, err := b.torn(want); torn != "" || err != nil {
		return failed("%s, /%s holds only the beginning of its new content", after, torn).of("G-11"), err
	}
	return b.again(ctx, want, after)
}

// torn finds a file that is half written: neither as it was nor as it shall be, but as that begins.
func (b *bench) torn(want reference) (string, error) {
	for _, name := range slices.Sorted(maps.Keys(want.contents)) {
		e, err := readEntry(filepath.Join(b.root, filepath.FromSlash(name)))
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
		data, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
		if err != nil {
			return "", err
		}
		if bytes.HasPrefix(want.contents[name], data) {
			return name, nil
		}
	}
	return "", nil
}

func twoAtOnce(ctx context.Context, b *bench) (finding, error) {
	want, err := b.trial.settled(ctx)
	if err != nil {
		return finding{}, err
	}
	if want.reason != "" || len(want.run.changed()) == 0 {
		return notJudged(want, "no change can be made in this image"), nil
	}
	for _, processes := range []int{1, 2} {
		f, err := b.trial.fresh(func(b *bench) (finding, error) { return b.both(ctx, want, processes) })
		if f.verdict != Pass || err != nil {
			return f, err
		}
	}
	return passed(), nil
}

// both applies twice at once, in one process of the plugin or in two.
func (b *bench) both(ctx context.Context, want reference, processes int) (finding, error) {
	var plugins []*plugin
	for range processes {
		p, err := b.start(ctx)
		if err != nil {
			return finding{}, err
		}
		plugins = append(plugins, p)
	}
	var wait sync.WaitGroup
	begin := make(chan struct{})
	runs := make([]applied, 2)
	for i := range runs {
		wait.Go(func() {
			<-begin
			runs[i] = plugins[i%processes].apply(ctx, b.applying(), 0, nil)
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
		if f := wrongAnswer(err, pluginv1.CodePrecondition, pluginv1.CodeRetry); f != "" {
			return failed("of two Applies at once %s, one %s", where, f), nil
		}
	}
	after := "after two Applies at once " + where
	if good == 0 {
		return b.again(ctx, want, after+", both refused,")
	}
	return b.compare(want, after)
}

func umasks(ctx context.Context, b *bench) (finding, error) {
	if !canSetUmask {
		return skipped("there is no umask on this operating system"), nil
	}
	want, err := b.trial.settled(ctx)
	if err != nil {
		return finding{}, err
	}
	if want.reason != "" || len(want.run.changed()) == 0 {
		return notJudged(want, "no change can be made in this image"), nil
	}
	for _, umask := range []int{0o000, 0o077} {
		f, err := b.trial.fresh(func(b *bench) (finding, error) {
			p, err := b.startWith(ctx, umask)
			if err != nil {
				return finding{}, err
			}
			if err := p.apply(ctx, b.applying(), 0, nil).failure(); err != nil {
				return failed("with the umask %03o, Apply fails: %v", umask, err), nil
			}
			return b.compare(want, fmt.Sprintf("with the umask %03o", umask))
		})
		if f.verdict != Pass || err != nil {
			return f, err
		}
	}
	return passed(), nil
}
