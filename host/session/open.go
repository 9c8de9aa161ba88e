package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	contractlaunch "github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

// Open prepares work with plugins on the live machine that changes nothing.
func Open(ctx context.Context, o Options) (*Session, error) { return open(ctx, o, "", run.ModePlan) }

// open prepares a run. Only an apply takes the lock and writes.
func open(ctx context.Context, o Options, root string, mode run.Mode) (_ *Session, err error) {
	s := &Session{o: o, root: root, image: root}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	s.Target, err = target.Detect(root)
	if mode == run.ModeValidate { // an empty root: the result does not depend on this machine
		if err != nil {
			s.Target = target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH}
		}
		s.root, err = s.temporary(machine.MaxPath)
		return s, err
	}
	if err != nil {
		return nil, &report.Error{Code: pluginv1.CodePrecondition.String(), Message: "detect the platform: " + err.Error()}
	}
	o.Log.Info("platform detected", "os", s.Target.OS, "distribution", s.Target.Distribution, "like", s.Target.Like,
		"version", s.Target.Version, "architecture", s.Target.Architecture, "root", root)
	if err := s.directories(mode); err != nil {
		return nil, err
	}
	o.Log.Debug("directories chosen", "state", s.stateDir, "run", s.runDir)
	if err := s.openHook(); err != nil {
		return nil, err
	}
	if mode != run.ModeApply {
		var id string
		if id, s.stateErr = s.machineID(ctx); s.stateErr == nil {
			s.store = state.Peek(s.stateDir, id)
		}
		return s, nil
	}
	return s, s.keep(ctx)
}

// openHook opens the init hook of a live machine, if there is one. An image has none to call.
func (s *Session) openHook() (err error) {
	if s.root != "" {
		return nil
	}
	s.hook, err = launch.OpenInitHook(contractlaunch.Environment(runtime.GOOS, s.lookupEnv))
	if s.hook != nil {
		s.cleanup = append(s.cleanup, s.hook.Close)
	}
	if err != nil {
		return cmp.Or(machine.Untrusted("init hook", err), error(stateError(err)))
	}
	return nil
}

// machineID returns the ID that state is bound to: the operating system's, else its init hook's.
func (s *Session) machineID(ctx context.Context) (string, error) {
	id := machine.ID(s.root)
	if id != "" || s.hook == nil {
		return id, nil
	}
	return s.hook.MachineID(ctx)
}

// Directories returns the directories of state and report on the live machine, for the values of the flags.
func Directories(stateDir, runDir string) (state, run string) {
	return cmp.Or(stateDir, machine.StateDir()), cmp.Or(runDir, machine.RunDir())
}

// directories chooses the directories of state and report, which are never in an image.
func (s *Session) directories(mode run.Mode) error {
	s.stateDir, s.runDir = s.o.StateDir, s.o.RunDir
	s.temporaryRun = s.runDir == "" && s.root != ""
	for _, dir := range []struct {
		path           *string
		fallback, flag string
	}{{&s.stateDir, machine.StateDir(), "--state-dir"}, {&s.runDir, machine.RunDir(), "--run-dir"}} {
		var err error
		switch {
		case *dir.path != "":
			if *dir.path, err = filepath.Abs(*dir.path); err != nil {
				return stateError(err)
			}
		case s.root == "" || mode != run.ModeApply:
			*dir.path = dir.fallback
		default:
			if *dir.path, err = s.temporary(machine.MaxPath); err != nil {
				return err
			}
			continue
		}
		if err := machine.Untrusted(dir.flag, trust.Parent(*dir.path)); err != nil {
			return err
		}
	}
	return nil
}

// keep takes the lock and opens the state store.
func (s *Session) keep(ctx context.Context) error {
	if err := s.takeLock(); err != nil {
		return err
	}
	s.record.path = filepath.Join(s.runDir, state.ReportFile)
	var id string
	if id, s.stateErr = s.machineID(ctx); s.stateErr == nil {
		s.store, s.stateErr = state.Open(s.stateDir, id)
	}
	s.writes = s.newWrites()
	s.record.reports = state.Reports{RunDir: s.runDir, Store: s.store}
	return nil
}

// takeLock takes the lock of the machine or image, and removes the sockets of killed runs.
func (s *Session) takeLock() error {
	if err := state.MakeRunDir(s.runDir); err != nil {
		return stateError(err)
	}
	if _, err := trust.Directory(s.runDir, false); err != nil { // again, because another user may have created it
		return cmp.Or(machine.Untrusted("--run-dir", err), error(stateError(err)))
	}
	at := machine.LockAt(s.root, s.runDir)
	lock, err := state.Acquire(at)
	var locked *state.LockedError
	if errors.As(err, &locked) {
		hint := "wait for it to end; machineadm status shows its progress"
		if len(locked.Left) > 0 {
			hint = "end them, for example with kill, and run the command again"
		}
		return &report.Error{Code: report.CodeLocked, Message: fmt.Sprintf("%s: the lock %s is held", err, at), Hint: hint}
	}
	if err != nil {
		return stateError(err)
	}
	s.lock = lock
	s.o.Log.Debug("lock taken", "path", at)
	s.cleanup = append(s.cleanup, func() { _ = lock.Release() }) // the process exits next
	return s.removeSockets()
}
