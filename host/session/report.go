package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path/filepath"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/version"
)

// head returns the report at the start of the run.
func (s *Session) head(phase string) report.Report {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	sinceBoot := machine.Uptime()
	if s.root != "" {
		sinceBoot = 0
	}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, UptimeMs: sinceBoot.Milliseconds(),
		RunID: hex.EncodeToString(id), BootID: machine.BootID(s.root), StartedAt: time.Now().UTC(),
		Outcome: report.RunRunning, Phase: phase, Root: s.image,
		Host: report.Host{
			Hostname: s.Target.Hostname, Distribution: s.Target.Distribution, OSVersion: s.Target.Version,
			Arch: s.Target.Architecture, Kernel: s.Target.Kernel, Machineadm: version.String(),
		},
		Documents: []report.Document{},
	}
}

// save writes the report: to the state store if there is one, and to the run directory.
func (s *Session) save(r report.Report, details map[string]string) error {
	err := s.record.reports.Write(r, details)
	s.o.Log.Debug("report written", "path", s.record.path, "outcome", r.Outcome, "ok", err == nil)
	s.record.unkept = err != nil
	return err
}

// broken ends a run that cannot use its state, with a report if one can be written.
func (s *Session) broken(ctx context.Context, head report.Report, err error, observe func(run.Event)) report.Report {
	details := map[string]string{}
	return s.refuse(ctx, head, []report.Error{withOutput(*stateError(err), err, details)}, details, observe)
}

// withOutput returns an error of a run that cannot use its state, and adds the output of the init hook to details.
func withOutput(e report.Error, err error, details map[string]string) report.Error {
	if failed, ok := errors.AsType[*launch.HookError](err); ok && failed.Output != "" {
		e.Details = "init-hook"
		details[e.Details] = failed.Output
	}
	return e
}

// refuse ends a run whose input cannot be read, with a report.
func (s *Session) refuse(
	ctx context.Context, head report.Report, wrong []report.Error, details map[string]string, observe func(run.Event),
) report.Report {
	head.FinishedAt = time.Now().UTC()
	head.Outcome, head.ExitCode = report.Ending(wrong[0].Code, false)
	if wrong[0].Code == report.CodeUntrusted { // the input is refused, and not a plugin
		head.Outcome = report.RunInvalid
	}
	head.Errors = append(head.Errors, wrong...)
	observe(run.Event{Type: run.EventRunFinished, Time: head.FinishedAt, Report: &head})
	if s.record.path != "" {
		if err := s.save(head, details); err != nil {
			s.o.Fail(&report.Error{Message: err.Error()}) // the exit code reports the input error
		}
	}
	s.deliver(ctx, nil, head)
	s.showReport(head, details)
	return head
}

// showReport writes the path of the report of a failed run. Details that a temporary run directory would lose are saved in a
// private directory.
func (s *Session) showReport(result report.Report, details map[string]string) {
	if result.ExitCode == report.ExitOK || result.ExitCode == report.ExitDiffers {
		return
	}
	switch {
	case s.record.path != "" && s.record.unkept: // the file is the report of another run
	case s.record.path != "" && !s.temporaryRun:
		s.o.Note("report: " + s.record.path + " (shown by machineadm status)")
	case len(details) > 0:
		dir, err := machine.PrivateDir(s.o.Log, machine.KeptPrefix, machine.MaxPath)
		if err == nil {
			err = (&state.Reports{RunDir: dir}).Write(result, details)
		}
		if err != nil {
			s.o.Fail(&report.Error{Message: "the details cannot be saved: " + err.Error()})
			return
		}
		s.o.Note("report: " + filepath.Join(dir, state.ReportFile) + " (remove its directory after reading it)")
	}
}
