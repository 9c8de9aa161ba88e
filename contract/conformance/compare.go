package conformance

import (
	"context"
	"fmt"
)

// compare compares the root with the root of the undisturbed run. The finding completes f.
func (f *fixture) compare(want reference, after string, of finding) (result, error) {
	got, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	d := differences(want.after, got, aspects{modes: true, owners: true})
	if len(d) == 0 {
		return passed(), nil
	}
	lines := f.firstDifference(want.after, got, func(name string) ([]byte, error) { return f.runner.content(want, name) })
	of.expected = "the tree of an undisturbed run"
	of.got = fmt.Sprintf("%s, the tree differs from an undisturbed run's:%s%s", after, list(d), lines)
	return failed(of), nil
}

// rerun applies once more, by another process, and compares the root with the root of the undisturbed run.
func (f *fixture) rerun(ctx context.Context, want reference, after string) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	if err := p.apply(ctx, f.applying(), 0, nil).failure(); err != nil {
		return failed(finding{
			clause: "G-10", expected: "an Apply that was interrupted can be repeated",
			got:   fmt.Sprintf("%s, the next Apply fails: %v", after, err),
			cause: "a leftover of the interrupted Apply, such as a temporary file or a lock, that the plugin does not replace",
		}), nil
	}
	return f.compare(want, after+" and another Apply", finding{
		clause: "G-10",
		cause: "the plugin leaves a temporary file under a name that the next process does not use, or plans from what it " +
			"remembers instead of what it observes",
	})
}
