package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// Cleaned is the result of Clean.
type Cleaned struct {
	Removed []string          `json:"removed"` // absolute paths
	Choices map[string]string `json:"choices"` // the providers that the image keeps, by KIND/NAME
}

// Clean removes the state of a machine or image, so that a clone begins without it. discard drops a run that waits for a reboot
// or failed after it.
func Clean(ctx context.Context, o Options, root string, discard bool) (Cleaned, error) {
	root, err := machine.AbsoluteRoot(root)
	if err != nil {
		return Cleaned{}, err
	}
	s := &Session{o: o, root: root, image: root}
	defer s.Close()
	prepared, err := s.lockPrepared(ctx)
	if err != nil {
		return Cleaned{}, err
	}
	if why, reboot, err := prepared.Unfinished(); err != nil {
		return Cleaned{}, stateError(err)
	} else if why != "" && !discard {
		return Cleaned{}, unfinished(why, reboot)
	}
	s.cleanUp()
	if err := s.writes.CleanUp(); err != nil { // before the record is removed
		return Cleaned{}, stateError(err)
	}
	result := Cleaned{Removed: []string{}}
	removed, err := s.unseat(ctx)
	if err != nil {
		return Cleaned{}, stateError(err)
	}
	files, choices, err := prepared.Clean()
	if err != nil {
		return Cleaned{}, stateError(err)
	}
	result.Removed, result.Choices = append(append(result.Removed, removed...), files...), choices
	return result, nil
}

// unfinished refuses to clean half of a preparation: a clone would not do the rest of it.
func unfinished(why string, reboot bool) error {
	e := &report.Error{Code: pluginv1.CodePrecondition.String(), Message: why, Hint: "run machineadm apply --resume"}
	if reboot {
		e.Code, e.Hint = report.CodeReboot, "reboot, so that it continues; without --reboot, apply the stream again"
	}
	e.Hint += "; then run machineadm clean again, or discard it with --discard-run"
	return e
}

// lockPrepared takes the lock and returns the machine or image, whose directories it sets.
func (s *Session) lockPrepared(ctx context.Context) (prepared state.Prepared, err error) {
	if err := s.directories(run.ModeApply); err != nil {
		return prepared, err
	}
	if err := s.openHook(); err != nil {
		return prepared, err
	}
	if err := s.takeLock(); err != nil {
		return prepared, err
	}
	prepared = state.Prepared{Root: s.root, BootID: machine.BootID("")}
	if prepared.MachineID, err = s.machineID(ctx); err != nil {
		return prepared, stateError(err)
	}
	if s.root != "" {
		if err := s.inside(); err != nil {
			return prepared, err
		}
	}
	prepared.StateDir, prepared.RunDir = s.stateDir, s.runDir
	s.writes = s.newWrites()
	return prepared, nil
}

// inside sets the directories of an image, which has state if machineadm ran in it as in a machine.
func (s *Session) inside() (err error) {
	for _, dir := range []struct {
		to              *string
		given, standard string
	}{{&s.stateDir, s.o.StateDir, machine.StateDir()}, {&s.runDir, s.o.RunDir, machine.RunDir()}} {
		if dir.given != "" {
			continue
		}
		if *dir.to, err = state.Below(s.root, dir.standard); err != nil {
			return stateError(err)
		}
	}
	if lock := filepath.Join(s.runDir, "lock"); state.Held(lock) {
		return &report.Error{
			Code: report.CodeLocked, Message: "a run in the image is in progress: the lock " + lock + " is held", Hint: "wait for it to end",
		}
	}
	return nil
}

// unseat removes what a run leaves outside of the directories of the live machine: the start of a waiting run, and the sentinel.
func (s *Session) unseat(ctx context.Context) (removed []string, err error) {
	if s.root != "" {
		return nil, nil
	}
	starter, err := s.starter()
	if err != nil {
		return nil, err
	}
	files := append(resume.Files(), machine.NewSentinel().Path())
	there := func(path string) bool { _, err := os.Lstat(path); return !errors.Is(err, fs.ErrNotExist) }
	files = slices.DeleteFunc(files, func(path string) bool { return !there(path) })
	err = errors.Join(starter.Remove(ctx), machine.NewSentinel().Remove())
	if reports, none := s.reportStarter(); none == nil {
		err = errors.Join(err, reports.Remove(ctx))
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(files, there), nil // a unit of the operating system stays
}
