package cli

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/version"
)

// place is the machine or image of a run, with its directories.
type place struct {
	root         string // of the image, or an empty directory when validating
	image        string // the directory of --root
	target       target.Target
	runDir       string
	stateDir     string
	reportPath   string // empty without a report
	temporaryRun bool   // the run directory is temporary
	unkept       bool   // the report on disk is not the last one of this run
	stateErr     error  // why there is no store, although the lock is held
	log          *slog.Logger
	lock         *state.Lock
	writes       *state.Writes // of an apply only
	store        *state.Store
	reports      state.Reports // of this run, when reportPath is set
	cleanup      []func()
}

func (p *place) close() {
	for i := len(p.cleanup) - 1; i >= 0; i-- {
		p.cleanup[i]()
	}
	p.cleanup = nil
}

// open prepares a run. Only an apply takes the lock and writes.
func (g *globals) open(log *slog.Logger, root string, mode run.Mode) (_ *place, err error) {
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
	if mode != run.ModeApply {
		p.store = state.Peek(p.stateDir, machineID(p.root))
		return p, nil
	}
	return p, p.keep()
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

// untrusted returns an error for a directory that other users can change, and nil for other errors, which the use of the
// directory reports.
func untrusted(flag string, err error) error {
	var refused *trust.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return &exitError{code: report.ExitUntrusted, message: flag + ": " + refused.Error(), hint: refused.Remedy}
}

// keep takes the lock and opens the state store.
func (p *place) keep() error {
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
	p.reportPath = filepath.Join(p.runDir, state.ReportFile)
	if err := p.removeSockets(); err != nil {
		return err
	}
	p.store, p.stateErr = state.Open(p.stateDir, machineID(p.root))
	p.writes = p.newWrites()
	p.reports = state.Reports{RunDir: p.runDir, Store: p.store}
	return nil
}

// lockAt returns the lock of the live machine or of an image.
func lockAt(root, runDir string) string {
	if root != "" {
		return imageLock(root, runDir)
	}
	return filepath.Join(runDir, "lock")
}

// head returns the report at the start of the run.
func (p *place) head(o *applyFlags) report.Report {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		RunID: hex.EncodeToString(id), BootID: bootID(p.root), StartedAt: time.Now().UTC(),
		Outcome: report.RunRunning, Phase: o.phase, Root: p.image,
		Host: report.Host{
			Hostname: p.target.Hostname, OS: p.target.Distribution, OSVersion: p.target.Version,
			Arch: p.target.Architecture, Kernel: p.target.Kernel, Machineadm: version.String(),
		},
		Documents: []report.Document{},
	}
}

// provide sets the dependencies that hold state. A plan only reads it.
func (g *globals) provide(p *place, with *run.Dependencies, o run.Options, head report.Report) error {
	switch {
	case p.store == nil:
	case p.root == "":
		with.State, with.Reboots = p.store, p.store.Reboots(head.BootID)
	default:
		with.State = p.store.ForImage(p.root, o.ImageChoices)
	}
	if o.Mode != run.ModeApply {
		return nil
	}
	with.Record, with.Writes = p.record, p.writes
	if p.root != "" {
		return nil
	}
	kept, err := g.resume(p, o, head)
	if err != nil {
		return err
	}
	with.Sentinel, with.Resume = newSentinel(), kept
	return nil
}

// record writes the report: to the state store if there is one, and to the run directory.
func (p *place) record(r report.Report, details map[string]string) error {
	err := p.reports.Write(r, details)
	p.log.Debug("report written", "path", p.reportPath, "outcome", r.Outcome, "ok", err == nil)
	p.unkept = err != nil
	return err
}

// broken ends a run that cannot use its state, with a report if one can be written.
func (p *place) broken(head report.Report, err error, observe func(run.Event), s streams) error {
	exit := stateExit(err)
	return p.refuse(head, []report.Error{{Code: report.CodeState, Message: exit.message, Hint: exit.hint}}, observe, s)
}

// refuse ends a run whose input cannot be read, with a report.
func (p *place) refuse(head report.Report, wrong []report.Error, observe func(run.Event), s streams) error {
	head.FinishedAt = time.Now().UTC()
	head.Outcome, head.ExitCode = ending(wrong[0])
	head.Errors = append(head.Errors, wrong...)
	observe(run.Event{Type: run.EventRunFinished, Time: head.FinishedAt, Report: &head})
	if p.reportPath != "" {
		if err := p.record(head, nil); err != nil {
			(&exitError{message: err.Error()}).show(s) // the exit code reports the input error
		}
	}
	p.showReport(head, nil, s)
	return &exitError{code: head.ExitCode}
}

// showReport writes the path of the report of a failed run. Details that a temporary run directory would lose are saved in a
// private directory.
func (p *place) showReport(result report.Report, details map[string]string, s streams) {
	if result.ExitCode == report.ExitOK || result.ExitCode == report.ExitDiffers {
		return
	}
	switch {
	case p.reportPath != "" && p.unkept: // the file is the report of another run
	case p.reportPath != "" && !p.temporaryRun:
		_, _ = fmt.Fprintf(s.err, "report: %s (shown by machineadm status)\n", p.reportPath) // standard error is the last resort
	case len(details) > 0:
		dir, err := temporary(p.log, keptPrefix, maxPath)
		if err == nil {
			err = (&state.Reports{RunDir: dir}).Write(result, details)
		}
		if err != nil {
			(&exitError{message: "the details cannot be saved: " + err.Error()}).show(s)
			return
		}
		_, _ = fmt.Fprintf(s.err, "report: %s (remove its directory after reading it)\n", filepath.Join(dir, state.ReportFile)) // likewise
	}
}

// stateExit returns the error of a run that cannot write its state.
func stateExit(err error) *exitError {
	hint := "check that the directory is writable and not full"
	if errors.Is(err, os.ErrPermission) {
		hint = "run as root, or give --state-dir and --run-dir"
	}
	return &exitError{code: report.ExitState, message: err.Error(), hint: hint}
}

// digests returns the cache of plugin digests. Only an apply saves new ones.
func (p *place) digests(log *slog.Logger) *launch.Digests {
	if p.store == nil {
		return nil
	}
	d := launch.OpenDigests(filepath.Join(p.store.Dir(), state.DigestsFile))
	if p.lock != nil {
		p.cleanup = append(p.cleanup, func() {
			if err := d.Save(); err != nil {
				log.Warn("the digests of plugins are not cached, so the next run computes them again", "error", err)
			}
		})
	}
	return d
}
