// Package files compares files with their desired states and changes them, in the words of a plan.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Spec is the desired state of a file, as sdk.FileSpec has it.
type Spec struct {
	Path string
	// Want is the state; the zero value means absent.
	Want      State
	Sensitive bool
	Outside   []string
	Part      *Part
	// Step names the file in the plan of an activation whose configuration it is not a part of.
	Step string
}

// Part is sdk.Part.
type Part struct {
	Name    string
	Content []byte
}

// Claim records that the document owns the file. Sensitive is not part of its state.
func (s Spec) Claim(m machine.Machine) {
	switch {
	case s.Part != nil:
		var value []string
		if s.Part.Content != nil {
			value = []string{string(s.Part.Content)}
		}
		m.Claim(pluginv1.FileClaim(s.Path, s.Part.Name), "", value...)
	case !s.Want.Exists:
		m.Claim(pluginv1.FileClaim(s.Path, ""), "")
	default:
		owner := ""
		if s.Want.UID >= 0 || s.Want.GID >= 0 {
			owner = fmt.Sprintf("%d:%d", s.Want.UID, s.Want.GID)
		}
		m.Claim(pluginv1.FileClaim(s.Path, ""), "", string(s.Want.Content), Octal(s.Want.Mode), owner)
	}
}

// Check refuses an incomplete specification.
func (s Spec) Check() error {
	if !s.Want.Exists {
		return nil
	}
	if s.Want.Mode&^modeBits != 0 {
		return fmt.Errorf("file %s: %w: its mode holds more than permission bits", s.Path, fs.ErrInvalid)
	}
	if s.Part != nil && s.Part.Name == "" {
		return fmt.Errorf("file %s: %w: its part has no name", s.Path, fs.ErrInvalid)
	}
	return nil
}

// Wanted is the state that takes the place of have.
func (s Spec) Wanted(have State) (State, error) {
	if s.Want.Exists && s.Want.Mode == 0 && (!have.Exists || have.Mode.Perm() != 0) {
		return State{}, fmt.Errorf("file %s: %w: its mode is missing", s.Path, fs.ErrInvalid)
	}
	return s.Want, nil
}

// Change is a change of one file.
type Change struct {
	ID, Summary, Diff string
	Do                func() error
}

// Changes returns the changes of the files that differ.
func Changes(f System, specs []Spec) ([]*Change, error) {
	var changes []*Change
	for _, spec := range specs {
		change, err := spec.Change(f)
		if err != nil {
			return nil, err
		}
		if change != nil {
			changes = append(changes, change)
		}
	}
	return changes, nil
}

// Change returns the change that sets the state of the file; nil when it matches.
func (s Spec) Change(f System) (*Change, error) {
	if !s.Want.Exists {
		return absence(f, s.Path)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	have, err := f.Read(s.Path)
	if err != nil {
		return nil, err
	}
	want, err := s.Wanted(have)
	if err != nil {
		return nil, err
	}
	same := have.Matches(want)
	if !same || len(s.Outside) > 0 {
		err = f.Permit(s.Path, s.Outside)
	}
	if same || err != nil {
		return nil, err
	}
	return &Change{
		ID: "file:" + s.Path, Summary: summary(s.Path, have, want), Diff: Difference(s.Path, have, want, s.Sensitive),
		Do: func() error {
			now, err := f.Read(s.Path)
			if err != nil || now.Matches(want) {
				return err
			}
			if err := f.Permit(s.Path, s.Outside); err != nil { // links can have changed
				return err
			}
			return f.Put(s.Path, want)
		},
	}, nil
}

func summary(path string, have, want State) string {
	switch {
	case !have.Exists:
		return "create " + path
	case !bytes.Equal(have.Content, want.Content):
		return "change " + path
	default:
		return "change mode or owner of " + path
	}
}

func absence(f System, path string) (*Change, error) {
	info, err := f.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read a file: %w", err)
	case info.Mode.IsDir():
		return nil, fault.Precondition(path+" is a directory where no file may be", "move it away, then run again")
	}
	if err := f.Permit(filepath.Dir(path), nil); err != nil {
		return nil, err
	}
	change := &Change{
		ID: "file:" + path, Summary: "remove " + path, Diff: path + ": removed\n",
		Do: func() error { return f.Put(path, State{}) },
	}
	if info.Mode.IsRegular() {
		have, err := f.Read(path)
		if err != nil {
			return nil, err
		}
		change.Diff = Difference(path, have, State{}, false)
	}
	return change, nil
}
