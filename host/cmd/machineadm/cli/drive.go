package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// drive executes one run, from the flags to the exit code.
func (g *globals) drive(ctx context.Context, s streams, o *applyFlags, mode run.Mode, observe func(run.Event)) error {
	phase, err := o.check()
	if err != nil {
		return err
	}
	log, err := g.logger(s.err)
	if err != nil {
		return err
	}
	root, err := absoluteRoot(o.root)
	if err != nil {
		return o.unopened(err, observe)
	}
	ctx, interrupt, restore := interrupts(ctx)
	defer restore()
	var stream []byte
	var streamErr error
	if !o.resume { // before the lock is taken, because stdin may be interactive
		stream, streamErr = awaitStream(ctx, interrupt, g.timeout, o.path, s.in)
	}
	where, err := g.open(ctx, log, root, mode)
	if err != nil {
		return o.unopened(err, observe)
	}
	defer where.close()
	if mode == run.ModeApply && root == "" {
		where.deliver = func(fleet *launch.Fleet, r report.Report) { g.deliver(ctx, where, fleet, stream, r, s) }
	}
	if where.stateErr != nil {
		return where.broken(where.head(o), where.stateErr, observe, s)
	}
	where.cleanUp()
	if o.resume {
		if stream, err = g.recall(where, o); err != nil {
			return where.broken(where.head(o), err, observe, s)
		}
		if stream == nil {
			return g.nothingToResume(ctx, where, o, s, observe)
		}
		if phase, err = phaseOf(o.phase); err != nil {
			return err
		}
	}
	head := where.head(o)
	if streamErr != nil {
		return where.refuse(head, streamErrors(o.path, streamErr), nil, observe, s)
	}
	options := run.Options{
		Mode: mode, File: streamName(o.path), Stream: stream, Root: where.root, Target: where.target, Phase: phase,
		AllowSecrets: o.allowSecrets, Reboot: o.reboot, Resumed: o.resume, ResolveOnly: o.resolveOnly, Timeout: g.timeout, Interrupt: interrupt,
		ContractOnly: mode == run.ModeValidate && !runsPlugins(),
	}
	if at, err := where.vendorFiles(&options); err != nil {
		return where.refuse(head, inputErrors(at, err), nil, observe, s)
	}
	if err := where.identify(&head, &options); err != nil {
		return where.broken(head, err, observe, s)
	}
	noteStream(o.path, options, log)
	result, err := g.execute(ctx, where, s, options, head, observe, log)
	if err != nil {
		return o.unopened(err, observe)
	}
	if result.ExitCode == report.ExitOK {
		return nil
	}
	return &exitError{code: result.ExitCode}
}

// execute runs the stream with the installed plugins. An error means that the run did not begin.
func (g *globals) execute(
	ctx context.Context, where *place, s streams, o run.Options, head report.Report, observe func(run.Event), log *slog.Logger,
) (report.Report, error) {
	if o.ContractOnly {
		result, _ := run.Execute(ctx, o, run.Dependencies{Observe: observe, Log: log}, head)
		return result, nil
	}
	fleet, err := g.fleet(where, log)
	if err != nil {
		return report.Report{}, err
	}
	defer endAll(fleet, log)
	with := run.Dependencies{Plugins: fleet, Observe: observe, Log: log}
	if err := g.provide(where, &with, o, head); err != nil {
		return report.Report{}, err
	}
	quiet := make(chan struct{})
	if live, ok := s.out.(*reporting.Live); ok {
		go noticeInterrupt(o.Interrupt, quiet, live)
	}
	end := g.follow(ctx, where, fleet, o, &with)
	result, details := run.Execute(ctx, o, with, head)
	close(quiet)
	end()
	if where.deliver != nil {
		where.deliver(fleet, result)
	}
	endAll(fleet, log) // before a reboot
	where.tree = nil
	where.endWrites()
	if result.ExitCode == report.ExitReboot && o.Reboot {
		where.reboot(context.WithoutCancel(ctx), &result, details, observe, s)
	}
	where.showReport(result, details, s)
	if result.Resume == report.ResumeByHand {
		_, _ = fmt.Fprintln(s.err, g.resumeHint(where.stateDir, where.runDir)) // standard error is the last resort
	}
	return result, nil
}

// provide sets the dependencies that hold state. A plan only reads it.
func (g *globals) provide(p *place, with *run.Dependencies, o run.Options, head report.Report) error {
	switch {
	case p.store == nil:
	case p.root == "":
		with.State, with.Reboots, with.Resolved = p.store, p.store.Reboots(head.BootID), p.store.Resolved()
	default:
		with.State = p.store.ForImage(p.root, o.ImageChoices)
	}
	if p.root != "" {
		with.Choosable = func() error { return state.Choosable(p.root) }
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
	with.Sentinel, with.Resume, with.Generation = newSentinel(), kept, p.store.Generation
	return nil
}

// noticeInterrupt writes the effect of the first interrupt and of a second one.
func noticeInterrupt(interrupt <-chan struct{}, quiet <-chan struct{}, out io.Writer) {
	select {
	case <-interrupt:
		_, _ = fmt.Fprintln(out, "stopping after the current change; interrupt again to stop at once")
	case <-quiet:
	}
}

// reboot requests the reboot that the run needs. The run can resume after any reboot, so that a failure ends nothing; that of the
// init hook changes the result of the run.
func (p *place) reboot(ctx context.Context, result *report.Report, details map[string]string, observe func(run.Event), s streams) {
	_, _ = fmt.Fprintln(s.err, "rebooting; the run resumes after the reboot") // standard error is the last resort
	if p.hook != nil {
		_, err := p.hook.Call(ctx, nil, launch.HookReboot)
		p.rebooted(err, result, details, observe, s)
	} else if err := launch.Reboot(ctx); err != nil {
		notRebooted(err).show(s)
	}
}

func notRebooted(err error) *exitError {
	return &exitError{message: fmt.Sprintf("the reboot failed: %s", err), hint: "reboot the machine: the run resumes after the reboot"}
}

// rebooted changes the result by an error of the init hook, and emits the end of the run again, because the reboot could have
// ended this process before an event that waits for it.
func (p *place) rebooted(err error, result *report.Report, details map[string]string, observe func(run.Event), s streams) {
	if err == nil {
		return
	}
	result.Outcome, result.ExitCode, result.FinishedAt = report.RunFailed, report.ExitState, time.Now().UTC()
	result.Errors = append(result.Errors, stateProblem(notRebooted(err), err, details))
	observe(run.Event{Type: run.EventRunFinished, Time: result.FinishedAt, Report: result})
	if err := p.record(*result, details); err != nil {
		(&exitError{message: err.Error()}).show(s)
	}
	if p.deliver != nil {
		p.deliver(nil, *result)
	}
}

// interrupts closes the channel at the first signal to stop, and cancels the context at the second.
func interrupts(ctx context.Context) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	first := make(chan struct{})
	go func() {
		for n := range 2 {
			select {
			case <-signals:
			case <-ctx.Done():
				return
			}
			if n == 0 {
				close(first)
			} else {
				cancel()
			}
		}
	}()
	return ctx, first, func() { signal.Stop(signals); cancel() }
}
