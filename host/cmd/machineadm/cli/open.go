package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"

	contractlaunch "github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

// open prepares a run. Only an apply takes the lock and writes.
func (g *globals) open(ctx context.Context, log *slog.Logger, root string, mode run.Mode) (_ *place, err error) {
	p := &place{root: root, image: root, log: log}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	p.target, err = target.Detect(root)
	if mode == run.ModeValidate { // an empty root: the result does not depend on this machine
		if err != nil {
			p.target = target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH}
		}
		p.root, err = p.temporary(maxPath)
		return p, err
	}
	if err != nil {
		return nil, &exitError{code: report.ExitPrecondition, message: "detect the platform: " + err.Error()}
	}
	log.Info("platform detected", "os", p.target.OS, "distribution", p.target.Distribution, "like", p.target.Like,
		"version", p.target.Version, "architecture", p.target.Architecture, "root", root)
	if err := g.directories(p, mode); err != nil {
		return nil, err
	}
	log.Debug("directories chosen", "state", p.stateDir, "run", p.runDir)
	if err := g.openHook(p); err != nil {
		return nil, err
	}
	if mode != run.ModeApply {
		var id string
		if id, p.stateErr = p.machineID(ctx); p.stateErr == nil {
			p.store = state.Peek(p.stateDir, id)
		}
		return p, nil
	}
	return p, p.keep(ctx)
}

// openHook opens the init hook of a live machine, if there is one. An image has none to call.
func (g *globals) openHook(p *place) (err error) {
	if p.root != "" {
		return nil
	}
	p.hook, err = launch.OpenInitHook(contractlaunch.Environment(runtime.GOOS, g.lookupEnv))
	if p.hook != nil {
		p.cleanup = append(p.cleanup, p.hook.Close)
	}
	if err != nil {
		return cmp.Or(untrusted("init hook", err), error(stateExit(err)))
	}
	return nil
}

// machineID returns the ID that state is bound to: that of the operating system, else that of its init hook.
func (p *place) machineID(ctx context.Context) (string, error) {
	id := machineID(p.root)
	if id != "" || p.hook == nil {
		return id, nil
	}
	return p.hook.MachineID(ctx)
}

// directories chooses the directories of state and report, which are never in an image.
func (g *globals) directories(p *place, mode run.Mode) error {
	p.stateDir, p.runDir = g.stateDir, g.runDir
	p.temporaryRun = g.runDir == "" && p.root != ""
	for _, dir := range []struct {
		path           *string
		fallback, flag string
	}{{&p.stateDir, defaultStateDir(), "--state-dir"}, {&p.runDir, defaultRunDir(), "--run-dir"}} {
		var err error
		switch {
		case *dir.path != "":
			if *dir.path, err = filepath.Abs(*dir.path); err != nil {
				return stateExit(err)
			}
		case p.root == "" || mode != run.ModeApply:
			*dir.path = dir.fallback
		default:
			if *dir.path, err = p.temporary(maxPath); err != nil {
				return err
			}
			continue
		}
		if err := untrusted(dir.flag, trust.Parent(*dir.path)); err != nil {
			return err
		}
	}
	return nil
}

// keep takes the lock and opens the state store.
func (p *place) keep(ctx context.Context) error {
	if err := p.takeLock(); err != nil {
		return err
	}
	p.reportPath = filepath.Join(p.runDir, state.ReportFile)
	var id string
	if id, p.stateErr = p.machineID(ctx); p.stateErr == nil {
		p.store, p.stateErr = state.Open(p.stateDir, id)
	}
	p.writes = p.newWrites()
	p.reports = state.Reports{RunDir: p.runDir, Store: p.store}
	return nil
}

// takeLock takes the lock of the machine or image, and removes the sockets of killed runs.
func (p *place) takeLock() error {
	if err := state.MakeRunDir(p.runDir); err != nil {
		return stateExit(err)
	}
	if _, err := trust.Directory(p.runDir, false); err != nil { // again, because another user may have created it
		return cmp.Or(untrusted("--run-dir", err), error(stateExit(err)))
	}
	at := lockAt(p.root, p.runDir)
	lock, err := state.Acquire(at)
	var locked *state.LockedError
	if errors.As(err, &locked) {
		hint := "wait for it to end; machineadm status shows its progress"
		if len(locked.Left) > 0 {
			hint = "end them, for example with kill, and run the command again"
		}
		return &exitError{code: report.ExitLocked, message: fmt.Sprintf("%s: the lock %s is held", err, at), hint: hint}
	}
	if err != nil {
		return stateExit(err)
	}
	p.lock = lock
	p.log.Debug("lock taken", "path", at)
	p.cleanup = append(p.cleanup, func() { _ = lock.Release() }) // the process exits next
	return p.removeSockets()
}

// lockAt returns the lock of the live machine or of an image.
func lockAt(root, runDir string) string {
	if root != "" {
		return imageLock(root, runDir)
	}
	return filepath.Join(runDir, "lock")
}
