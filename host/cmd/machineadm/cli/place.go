package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/version"
)

// open makes ready what a run needs of the machine before it reads anything: only an apply takes the lock and writes.
func (g *globals) open(root string, mode run.Mode) (_ *place, err error) {
	p := &place{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.root, err = absoluteRoot(root); err != nil {
		return nil, err
	}
	if p.target, err = target.Detect(p.root); err != nil {
		return nil, &exitError{code: report.ExitPrecondition, text: "error: find out which machine this is: " + err.Error()}
	}
	if mode == run.ModeValidate { // an empty root: nothing of this machine is looked at
		p.root, err = p.temporary("")
		return p, stateExit(err)
	}
	if err := g.directories(p, mode); err != nil {
		return nil, err
	}
	if mode != run.ModeApply {
		p.journal = journal.Peek(p.stateDir, machineID(p.root))
		return p, nil
	}
	return p, p.keep()
}

// directories settles where state and report go. A run on an image leaves none of them in the image.
func (g *globals) directories(p *place, mode run.Mode) error {
	p.stateDir, p.runDir = g.stateDir, g.runDir
	var err error
	for _, dir := range []struct {
		path     *string
		fallback string
	}{{&p.stateDir, defaultStateDir()}, {&p.runDir, defaultRunDir()}} {
		switch {
		case *dir.path != "":
			if *dir.path, err = filepath.Abs(*dir.path); err != nil {
				return stateExit(err)
			}
		case p.root == "" || mode != run.ModeApply:
			*dir.path = dir.fallback
		default:
			if *dir.path, err = p.temporary(""); err != nil {
				return stateExit(err)
			}
		}
	}
	return nil
}

// keep takes the lock and opens the state.
func (p *place) keep() error {
	if err := os.MkdirAll(p.runDir, 0o755); err != nil {
		return stateExit(err)
	}
	lockAt := filepath.Join(p.runDir, "lock")
	if p.root != "" {
		lockAt = imageLock(p.root, p.runDir)
	}
	lock, err := journal.Acquire(lockAt)
	if errors.Is(err, journal.ErrLocked) {
		return &exitError{code: report.ExitLocked, text: fmt.Sprintf(
			"error: %s\n  hint: wait for it to end; machineadm status tells where it is", err)}
	}
	if err != nil {
		return stateExit(err)
	}
	p.lock = lock
	p.cleanup = append(p.cleanup, func() { _ = lock.Release() }) // the process ends right after
	if p.journal, err = journal.Open(p.stateDir, machineID(p.root)); err != nil {
		return stateExit(err)
	}
	p.reportPath = filepath.Join(p.runDir, journal.ReportFile)
	return sweep(p.runDir)
}

// sweep removes the socket directories that a killed run left behind. The lock says that they are nobody's.
func sweep(runDir string) error {
	left, err := filepath.Glob(filepath.Join(runDir, "machineadm-*"))
	if err != nil {
		return stateExit(err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return stateExit(err)
		}
	}
	return nil
}

// head is the report before anything was done.
func (p *place) head(o *applyFlags) report.Report {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // it never fails: crypto/rand ends the process instead
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind,
		RunID: hex.EncodeToString(id), BootID: bootID(p.root), StartedAt: time.Now().UTC(),
		Outcome: report.RunRunning, Phase: o.phase, Root: p.imageRoot(),
		Host: report.Host{
			Hostname: p.target.Hostname, OS: p.target.Distribution, OSVersion: p.target.Version,
			Arch: p.target.Architecture, Kernel: p.target.Kernel, Machineadm: version.String(),
		},
		Documents: []report.Document{},
	}
}

func (p *place) imageRoot() string {
	if p.reportPath == "" {
		return ""
	}
	return p.root
}

// furnish gives the run what it keeps. A plan keeps nothing and only looks at what an apply chose.
func (p *place) furnish(with *run.Surroundings, mode run.Mode, reboot bool) {
	if p.journal != nil {
		with.State = p.journal
	}
	if mode != run.ModeApply {
		return
	}
	kept := journal.Reports{RunDir: p.runDir, Journal: p.journal}
	with.Record = kept.Write
	if p.root == "" {
		with.Sentinel = newSentinel()
		if reboot {
			with.Reboots = p.journal
		}
	}
}

// refuse ends a run whose input could not be read, with a report like any other.
func (p *place) refuse(
	head report.Report, file string, cause error, observe func(run.Event), s streams,
) error {
	head.Outcome, head.ExitCode, head.FinishedAt = report.RunInvalid, report.ExitUsage, time.Now().UTC()
	e := report.Error{Code: report.CodeUsage, Message: cause.Error(), File: file}
	var untrusted *trust.Error
	if errors.As(cause, &untrusted) {
		head.ExitCode, e.Code, e.Hint = report.ExitUntrusted, report.CodeUntrusted, untrusted.Remedy
	}
	head.Errors = append(head.Errors, e)
	observe(run.Event{Type: run.EventRunFinished, Time: head.FinishedAt, Report: &head})
	if p.reportPath != "" {
		if err := (journal.Reports{RunDir: p.runDir, Journal: p.journal}).Write(head, nil); err != nil {
			_, _ = fmt.Fprintln(s.err, "error: "+err.Error()) // the exit code is the input's
		}
	}
	return &exitError{code: head.ExitCode}
}

// stateExit is the end of a run that cannot keep its state.
func stateExit(err error) error {
	if err == nil {
		return nil
	}
	hint := "see that the directory is writable and not full"
	if errors.Is(err, os.ErrPermission) {
		hint = "run as root, or give --state-dir and --run-dir"
	}
	return &exitError{code: report.ExitState, text: "error: " + err.Error() + "\n  hint: " + hint}
}

// defaults reads the providers that the OS vendor chose, of the machine or of the image.
func (p *place) defaults(mode run.Mode) (map[string]string, error) {
	if mode == run.ModeValidate {
		return nil, nil //nolint:nilnil // none is a fine set of defaults
	}
	data, err := readInRoot(p.root, defaultsFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // none is a fine set of defaults
	}
	if err != nil {
		return nil, err
	}
	return document.Strings(defaultsFile, data)
}
