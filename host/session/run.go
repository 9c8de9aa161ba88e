package session

import (
	"context"
	"fmt"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/resume"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// Run executes one run, and returns its report. An error means that the run did not begin.
func Run(ctx context.Context, o Options, in Input) (report.Report, error) {
	if _, err := PhaseOf(in.Phase); err != nil {
		return report.Report{}, err
	}
	root, err := machine.AbsoluteRoot(in.Root)
	if err != nil {
		return report.Report{}, err
	}
	var text []byte
	var streamErr error
	if !in.Resume { // before the lock is taken, because stdin may be interactive
		text, streamErr = awaitStream(ctx, in.Interrupt, o.Timeout, in.Path, in.In)
	}
	s, err := open(ctx, o, root, in.Mode)
	if err != nil {
		return report.Report{}, err
	}
	defer s.Close()
	s.delivers = in.Mode == run.ModeApply && root == ""
	head := s.head(in.Phase)
	if !in.Resume && streamErr == nil {
		streamErr = s.decode(StreamName(in.Path), text)
	}
	if s.stateErr != nil {
		return s.broken(ctx, head, s.stateErr, in.Observe), nil
	}
	s.cleanUp()
	if in.Resume {
		if err := s.recall(&in); err != nil {
			return s.broken(ctx, head, err, in.Observe), nil
		}
		if s.stream == nil {
			return s.nothingToResume(ctx, in, head)
		}
		head.Phase = in.Phase
	}
	if streamErr != nil {
		return s.refuse(ctx, head, streamErrors(in.Path, streamErr), nil, in.Observe), nil
	}
	return s.begin(ctx, in, head)
}

// nothingToResume ends a run without a pending run, and removes the start at boot.
func (s *Session) nothingToResume(ctx context.Context, in Input, head report.Report) (report.Report, error) {
	starter, err := s.starter()
	if err != nil {
		return report.Report{}, err
	}
	if err := resume.Forget(ctx, s.store, starter); err != nil {
		return report.Report{}, stateError(err)
	}
	head.FinishedAt, head.Outcome = time.Now().UTC(), report.RunSucceeded
	return head, in.Idle(s.stateDir, head)
}

// begin runs a stream that is read.
func (s *Session) begin(ctx context.Context, in Input, head report.Report) (report.Report, error) {
	phase, err := PhaseOf(in.Phase)
	if err != nil {
		return report.Report{}, err
	}
	options := run.Options{
		Mode: in.Mode, Stream: s.stream, Text: s.text, Root: s.root, Target: s.Target, Phase: phase,
		AllowSecrets: in.AllowSecrets, Reboot: in.Reboot, Resumed: in.Resume, ResolveOnly: in.ResolveOnly, Timeout: s.o.Timeout,
		Interrupt: in.Interrupt, ContractOnly: in.Mode == run.ModeValidate && !RunsPlugins(),
	}
	if at, err := s.vendorFiles(&options); err != nil {
		return s.refuse(ctx, head, inputErrors(at, err), nil, in.Observe), nil
	}
	if err := s.identify(&head, &options); err != nil {
		return s.broken(ctx, head, err, in.Observe), nil
	}
	noteStream(in.Path, options, s.o.Log)
	return s.execute(ctx, in, options, head)
}

// execute runs the stream with the installed plugins. An error means that the run did not begin.
func (s *Session) execute(ctx context.Context, in Input, o run.Options, head report.Report) (report.Report, error) {
	if o.ContractOnly {
		result, _ := run.Execute(ctx, o, run.Dependencies{Observe: in.Observe, Log: s.o.Log}, head)
		return result, nil
	}
	fleet, err := s.Fleet()
	if err != nil {
		return report.Report{}, err
	}
	with := run.Dependencies{Plugins: fleet, Observe: in.Observe, Log: s.o.Log}
	if err := s.provide(&with, o, head); err != nil {
		return report.Report{}, err
	}
	quiet := make(chan struct{})
	if in.Interrupted != nil {
		go noticeInterrupt(in, quiet)
	}
	end := s.follow(ctx, fleet, &with)
	result, details := run.Execute(ctx, o, with, head)
	close(quiet)
	end()
	s.deliver(ctx, fleet, result)
	s.endAll(fleet) // before a reboot
	s.tree = nil
	s.endWrites()
	if result.ExitCode == report.ExitReboot && o.Reboot {
		s.reboot(context.WithoutCancel(ctx), &result, details, in.Observe)
	}
	s.showReport(result, details)
	if result.Resume == report.ResumeByHand {
		s.o.Note(ResumeHint(s.stateDir, s.runDir, s.o.LogFlags))
	}
	return result, nil
}

// provide sets the dependencies that hold state. A plan only reads it.
func (s *Session) provide(with *run.Dependencies, o run.Options, head report.Report) error {
	switch {
	case s.store == nil:
	case s.root == "":
		with.State, with.Reboots, with.Resolved = s.store, s.store.Reboots(head.BootID), s.store.Resolved()
	default:
		with.State = s.store.ForImage(s.root, o.ImageChoices)
	}
	if s.root != "" {
		with.Choosable = func() error { return state.Choosable(s.root) }
	}
	if o.Mode != run.ModeApply {
		return nil
	}
	with.Record, with.Writes = s.save, s.writes
	if s.root != "" {
		return nil
	}
	kept, err := s.resume(o, head)
	if err != nil {
		return err
	}
	with.Sentinel, with.Resume, with.StreamDigest = machine.NewSentinel(), kept, s.store.StreamDigest
	return nil
}

// noticeInterrupt calls Interrupted at the first interrupt, unless the run is over.
func noticeInterrupt(in Input, quiet <-chan struct{}) {
	select {
	case <-in.Interrupt:
		in.Interrupted()
	case <-quiet:
	}
}

// reboot requests the reboot that the run needs. The run can resume after any reboot, so that a failure ends nothing. A failure of
// the init hook changes the result of the run.
func (s *Session) reboot(ctx context.Context, result *report.Report, details map[string]string, observe func(run.Event)) {
	s.o.Note("rebooting; the run resumes after the reboot")
	if s.hook != nil {
		_, err := s.hook.Call(ctx, nil, launch.HookReboot)
		s.rebooted(ctx, err, result, details, observe)
	} else if err := launch.Reboot(ctx); err != nil {
		s.o.Fail(notRebooted(err))
	}
}

func notRebooted(err error) *report.Error {
	return &report.Error{
		Code: report.CodeState, Message: fmt.Sprintf("the reboot failed: %s", err), Hint: "reboot the machine: the run resumes after the reboot",
	}
}

// rebooted changes the result by an error of the init hook, and emits the end of the run again, because the reboot could have
// ended this process before an event that waits for it.
func (s *Session) rebooted(ctx context.Context, err error, result *report.Report, details map[string]string, observe func(run.Event)) {
	if err == nil {
		return
	}
	result.Outcome, result.ExitCode, result.FinishedAt = report.RunFailed, report.ExitState, time.Now().UTC()
	result.Errors = append(result.Errors, withOutput(*notRebooted(err), err, details))
	observe(run.Event{Type: run.EventRunFinished, Time: result.FinishedAt, Report: result})
	if err := s.save(*result, details); err != nil {
		s.o.Fail(&report.Error{Message: err.Error()})
	}
	s.deliver(ctx, nil, *result)
}
