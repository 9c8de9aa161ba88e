package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/version"
)

// head returns the report at the start of the run.
func (p *place) head(o *applyFlags) report.Report {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	sinceBoot := uptime()
	if p.root != "" {
		sinceBoot = 0
	}
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, UptimeMs: sinceBoot.Milliseconds(),
		RunID: hex.EncodeToString(id), BootID: bootID(p.root), StartedAt: time.Now().UTC(),
		Outcome: report.RunRunning, Phase: o.phase, Root: p.image,
		Host: report.Host{
			Hostname: p.target.Hostname, OS: p.target.Distribution, OSVersion: p.target.Version,
			Arch: p.target.Architecture, Kernel: p.target.Kernel, Machineadm: version.String(),
		},
		Documents: []report.Document{},
	}
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
	details := map[string]string{}
	return p.refuse(head, []report.Error{stateProblem(stateExit(err), err, details)}, details, observe, s)
}

// stateProblem returns the report's error of a run that cannot use its state, and adds the output of the init hook to details.
func stateProblem(exit *exitError, err error, details map[string]string) report.Error {
	e := report.Error{Code: report.CodeState, Message: exit.message, Hint: exit.hint}
	if failed, ok := errors.AsType[*launch.HookError](err); ok && failed.Output != "" {
		e.Details = "init-hook"
		details[e.Details] = failed.Output
	}
	return e
}

// refuse ends a run whose input cannot be read, with a report.
func (p *place) refuse(
	head report.Report, wrong []report.Error, details map[string]string, observe func(run.Event), s streams,
) error {
	head.FinishedAt = time.Now().UTC()
	head.Outcome, head.ExitCode = ending(wrong[0])
	head.Errors = append(head.Errors, wrong...)
	observe(run.Event{Type: run.EventRunFinished, Time: head.FinishedAt, Report: &head})
	if p.reportPath != "" {
		if err := p.record(head, details); err != nil {
			(&exitError{message: err.Error()}).show(s) // the exit code reports the input error
		}
	}
	if p.deliver != nil {
		p.deliver(nil, head)
	}
	p.showReport(head, details, s)
	return &exitError{code: head.ExitCode}
}

// ending returns outcome and exit code for an input error.
func ending(e report.Error) (report.Outcome, int) {
	switch e.Code {
	case report.CodeUntrusted:
		return report.RunInvalid, report.ExitUntrusted
	case report.CodeDeadline:
		return report.RunFailed, report.ExitDeadline
	case report.CodeState:
		return report.RunFailed, report.ExitState
	case report.CodeInterrupted:
		return report.RunInterrupted, report.ExitInterrupted
	default:
		return report.RunInvalid, report.ExitUsage
	}
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

// unopened reports, with --output json, an error before the run as an event.
func (o *applyFlags) unopened(err error, observe func(run.Event)) error {
	var exit *exitError
	if o.output != "json" || !errors.As(err, &exit) {
		return err
	}
	codes := map[int]string{
		report.ExitLocked: report.CodeLocked, report.ExitState: report.CodeState, report.ExitUntrusted: report.CodeUntrusted,
	}
	e := report.Error{Code: report.CodeUsage, Message: exit.message, Hint: exit.hint}
	if code, ok := codes[exit.code]; ok {
		e.Code = code
	}
	now := time.Now().UTC()
	observe(run.Event{Type: run.EventRunFinished, Time: now, Report: &report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, StartedAt: now, FinishedAt: now, Outcome: report.RunFailed,
		ExitCode: exit.code, Errors: []report.Error{e}, Documents: []report.Document{},
	}})
	return err
}
