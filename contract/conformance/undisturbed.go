package conformance

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// undisturbed returns the run of this case, which is made once.
func (r *runner) undisturbed(ctx context.Context) (reference, error) {
	var err error
	r.once.Do(func() { r.reference, err = r.makeReference(ctx) })
	return r.reference, err
}

// settled is undisturbed for checks that compare trees with it. Where outcome fails, the plugin may make another tree each
// time, which a disturbance does not explain.
func (r *runner) settled(ctx context.Context) (reference, error) {
	want, err := r.undisturbed(ctx)
	if want.reason == "" && r.unsettled {
		want.reason = "without disturbance the case does not end as expected, see " + outcomeName
	}
	return want, err
}

func (r *runner) makeReference(ctx context.Context) (want reference, err error) {
	if r.c.refused() {
		return reference{reason: "the document is refused"}, nil
	}
	want.reason = "the undisturbed run fails, see " + outcomeName
	f, err := r.fixture()
	if err != nil {
		return want, err
	}
	defer f.close()
	if want.before, err = readTree(f.root); err != nil {
		return want, err
	}
	p, err := f.start(ctx)
	if err != nil {
		return want, nil // the check that the reason names reports it
	}
	want.run = p.apply(ctx, f.applying(), 0, nil)
	if protocolBroken(want.run.err) {
		want.reason = "the events of Apply break the protocol, see " + eventsName
		return want, nil
	}
	if want.run.failure() != nil {
		return want, nil
	}
	want.reason = ""
	if want.after, err = readTree(f.root); err != nil {
		return want, err
	}
	want.contents, err = want.written(f.root)
	return want, err
}

// content returns the content of a file after the undisturbed run.
func (r *runner) content(want reference, name string) ([]byte, error) {
	if data, ok := want.contents[name]; ok {
		return data, nil
	}
	below := filepath.FromSlash(name)
	data, err := os.ReadFile(filepath.Join(r.c.dir, "root", below))
	if errors.Is(err, fs.ErrNotExist) && r.base != "" {
		return os.ReadFile(filepath.Join(r.base, below))
	}
	return data, err
}
