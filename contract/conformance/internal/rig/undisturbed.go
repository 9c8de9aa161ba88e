package rig

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
)

// Undisturbed returns the run of this case, which is made once.
func (r *Runner) Undisturbed(ctx context.Context) (Reference, error) {
	var err error
	r.once.Do(func() { r.reference, err = r.makeReference(ctx) })
	return r.reference, err
}

// Settled is undisturbed for checks that compare trees with it. Where outcome fails, the plugin may make another tree each
// time, which a disturbance does not explain.
func (r *Runner) Settled(ctx context.Context) (Reference, error) {
	want, err := r.Undisturbed(ctx)
	if want.Reason == "" && r.Unsettled {
		want.Reason = "without disturbance the case does not end as expected, see " + OutcomeName
	}
	return want, err
}

func (r *Runner) makeReference(ctx context.Context) (want Reference, err error) {
	if r.Case.Refused() {
		return Reference{Reason: "the document is refused"}, nil
	}
	want.Reason = "the undisturbed run fails, see " + OutcomeName
	f, err := r.Fixture()
	if err != nil {
		return want, err
	}
	defer f.Close()
	if want.Before, err = trees.ReadTree(f.Root); err != nil {
		return want, err
	}
	p, err := f.Start(ctx)
	if err != nil {
		return want, nil // the check that the reason names reports it
	}
	want.Run = p.CallApply(ctx, f.Applying(), 0, nil)
	if process.ProtocolBroken(want.Run.Err) {
		want.Reason = "the events of Apply break the protocol, see " + EventsName
		return want, nil
	}
	if want.Run.Failure() != nil {
		return want, nil
	}
	want.Reason = ""
	if want.After, err = trees.ReadTree(f.Root); err != nil {
		return want, err
	}
	want.Contents, err = want.written(f.Root)
	return want, err
}

// content returns the content of a file after the undisturbed run.
func (r *Runner) content(want Reference, name string) ([]byte, error) {
	if data, ok := want.Contents[name]; ok {
		return data, nil
	}
	below := filepath.FromSlash(name)
	data, err := os.ReadFile(filepath.Join(r.Case.Dir, "root", below))
	if errors.Is(err, fs.ErrNotExist) && r.Base != "" {
		return os.ReadFile(filepath.Join(r.Base, below))
	}
	return data, err
}
