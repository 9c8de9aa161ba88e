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
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/version"
)

// place is where a run happens: the machine or an image, and the directories that go with it.
type place struct {
	root       string // of the image, or an empty directory when validating
	image      string // what --root names
	target     target.Target
	runDir     string
	stateDir   string
	reportPath string // empty when no report is kept
	passing    bool   // the run directory ends with the run
	unkept     bool   // the report on disk is not that of this run, or not its last word
	stateErr   error  // why there is no journal; the lock is held all the same
	log        *slog.Logger
	lock       *journal.Lock
	writes     *journal.Writes // of an apply
	journal    *journal.Journal
	reports    journal.Reports // of this run, when reportPath is set
	cleanup    []func()
}

func (p *place) close() {
	for i := len(p.cleanup) - 1; i >= 0; i-- {
		p.cleanup[i]()
	}
	p.cleanup = nil
}

// open makes ready what a run needs of the machine: only an apply takes the lock and writes.
func (g *globals) open(log *slog.Logger, root string, mode run.Mode) (_ *place, err error) {
	p := &place{root: root, image: root, log: log}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	p.target, err = target.Detect(root)
	if mode == run.ModeValidate { // an empty root: nothing of this machine is looked at
		if err != nil {
			p.target = target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH}
		}
		p.root, err = p.temporary(maxPath)
		return p, err
	}
	if err != nil {
		return nil, &exitError{code: report.ExitPrecondition, message: "find out which machine this is: " + err.Error()}
	}
	log.Info("machine found", "os", p.target.OS, "distribution", p.target.Distribution, "like", p.target.Like,
		"version", p.target.Version, "architecture", p.target.Architecture, "root", root)
	if err := g.directories(p, mode); err != nil {
		return nil, err
	}
	log.Debug("directories chosen", "state", p.stateDir, "run", p.runDir)
	if mode != run.ModeApply {
		p.journal = journal.Peek(p.stateDir, machineID(p.root))
		return p, nil
	}
	return p, p.keep()
}

// directories settles where state and report go. A run on an image leaves none of them in the image.
func (g *globals) directories(p *place, mode run.Mode) error {
	p.stateDir, p.runDir = g.stateDir, g.runDir
	p.passing = g.runDir == "" && p.root != ""
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

// untrusted is the end of a run that was given a directory which others can change; nil for every other error, which
// whatever uses the directory finds again.
func untrusted(flag string, err error) error {
	var refused *trust.Error
	if !errors.As(err, &refused) {
		return nil
	}
	return &exitError{code: report.ExitUntrusted, message: flag + ": " + refused.Error(), hint: refused.Remedy}
}

// keep takes the lock and opens the state.
func (p *place) keep() error {
	if err := journal.MakeRunDir(p.runDir); err != nil {
		return stateExit(err)
	}
	if _, err := trust.Directory(p.runDir, false); err != nil { // again: it can be another user's who was faster
		return cmp.Or(untrusted("--run-dir", err), error(stateExit(err)))
	}
	at := lockAt(p.root, p.runDir)
	lock, err := journal.Acquire(at)
	var locked *journal.LockedError
	if errors.As(err, &locked) {
		hint := "wait for it to end; machineadm status shows where it is"
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
	p.cleanup = append(p.cleanup, func() { _ = lock.Release() }) // the process ends right after
	p.reportPath = filepath.Join(p.runDir, journal.ReportFile)
	if err := p.sweep(); err != nil {
		return err
	}
	p.journal, p.stateErr = journal.Open(p.stateDir, machineID(p.root))
	p.writes = p.newWrites()
	p.reports = journal.Reports{RunDir: p.runDir, Journal: p.journal}
	return nil
}

// lockAt is what a run on the live machine, or on an image, locks.
func lockAt(root, runDir string) string {
	if root != "" {
		return imageLock(root, runDir)
	}
	return filepath.Join(runDir, "lock")
}

// head is the report before anything was done.
func (p *place) head(o *applyFlags) report.Report {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it never fails: crypto/rand ends the process instead
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

// provide gives the run what it keeps. A plan keeps nothing and only reads what an apply has kept.
func (g *globals) provide(p *place, with *run.Dependencies, o run.Options, head report.Report) error {
	switch {
	case p.journal == nil:
	case p.root == "":
		with.State, with.Reboots = p.journal, p.journal.Reboots(head.BootID)
	default:
		with.State = p.journal.ForImage(p.root, o.ImageChoices)
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

// record keeps the report, where there is no journal in the run directory alone.
func (p *place) record(r report.Report, details map[string]string) error {
	err := p.reports.Write(r, details)
	p.log.Debug("report written", "path", p.reportPath, "outcome", r.Outcome, "ok", err == nil)
	p.unkept = err != nil
	return err
}

// broken ends a run that cannot use its state, with a report like any other as long as one can be written.
func (p *place) broken(head report.Report, err error, observe func(run.Event), s streams) error {
	exit := stateExit(err)
	return p.refuse(head, []report.Error{{Code: report.CodeState, Message: exit.message, Hint: exit.hint}}, observe, s)
}

// refuse ends a run whose input could not be read, with a report like any other.
func (p *place) refuse(head report.Report, wrong []report.Error, observe func(run.Event), s streams) error {
	head.FinishedAt = time.Now().UTC()
	head.Outcome, head.ExitCode = ending(wrong[0])
	head.Errors = append(head.Errors, wrong...)
	observe(run.Event{Type: run.EventRunFinished, Time: head.FinishedAt, Report: &head})
	if p.reportPath != "" {
		if err := p.record(head, nil); err != nil {
			(&exitError{message: err.Error()}).show(s.err) // the exit code is the input's
		}
	}
	p.tell(head, nil, s)
	return &exitError{code: head.ExitCode}
}

// tell says where the report of a run that did not succeed is. Words of other programs that would be lost with the run
// are kept in a directory that only this user can enter.
func (p *place) tell(result report.Report, details map[string]string, s streams) {
	if result.ExitCode == report.ExitOK || result.ExitCode == report.ExitDiffers {
		return
	}
	switch {
	case p.reportPath != "" && p.unkept: // what lies there is another run's
	case p.reportPath != "" && !p.passing:
		_, _ = fmt.Fprintf(s.err, "report: %s (machineadm status reads it)\n", p.reportPath) // nowhere else to say it
	case len(details) > 0:
		dir, err := temporary(p.log, keptPrefix, maxPath)
		if err == nil {
			err = (&journal.Reports{RunDir: dir}).Write(result, details)
		}
		if err != nil {
			(&exitError{message: "the details are lost: " + err.Error()}).show(s.err)
			return
		}
		_, _ = fmt.Fprintf(s.err, "report: %s (remove its directory when it is read)\n", filepath.Join(dir, journal.ReportFile)) // as above
	}
}

// stateExit is the end of a run that cannot keep its state.
func stateExit(err error) *exitError {
	hint := "see that the directory is writable and not full"
	if errors.Is(err, os.ErrPermission) {
		hint = "run as root, or give --state-dir and --run-dir"
	}
	return &exitError{code: report.ExitState, message: err.Error(), hint: hint}
}

// digests returns the cache of plugin digests. Only an apply saves new ones.
func (p *place) digests(log *slog.Logger) *launch.Digests {
	if p.journal == nil {
		return nil
	}
	d := launch.OpenDigests(filepath.Join(p.journal.Dir(), journal.DigestsFile))
	if p.lock != nil {
		p.cleanup = append(p.cleanup, func() {
			if err := d.Save(); err != nil {
				log.Warn("the digests of plugins are not cached, so the next run computes them again", "error", err)
			}
		})
	}
	return d
}
