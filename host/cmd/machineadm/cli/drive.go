package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"time"

	contractlaunch "github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/proctree"
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
	where, err := g.open(log, root, mode)
	if err != nil {
		return o.unopened(err, observe)
	}
	defer where.close()
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
		return where.refuse(head, inputErrors(o.path, streamErr), observe, s)
	}
	options := run.Options{
		Mode: mode, File: streamName(o.path), Stream: stream, Root: where.root, Target: where.target, Phase: phase,
		AllowSecrets: o.allowSecrets, Reboot: o.reboot, Timeout: g.timeout, Interrupt: interrupt,
		ContractOnly: mode == run.ModeValidate && !runsPlugins(),
	}
	if at, err := where.vendorFiles(&options); err != nil {
		return where.refuse(head, inputErrors(at, err), observe, s)
	}
	if where.store != nil && mode == run.ModeApply {
		if head.Generation, err = where.store.Generation(stream); err != nil {
			return where.broken(head, err, observe, s)
		}
	}
	noteStream(o.path, options, log)
	result, err := g.execute(ctx, where, s, options, head, observe, log)
	if err != nil {
		return o.unopened(err, observe)
	}
	return o.end(ctx, result, s)
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
	result, details := run.Execute(ctx, o, with, head)
	close(quiet)
	endAll(fleet, log) // before a reboot
	where.endWrites()
	where.showReport(result, details, s)
	if result.Resume == report.ResumeByHand {
		_, _ = fmt.Fprintln(s.err, g.resumeHint(where.stateDir, where.runDir)) // standard error is the last resort
	}
	return result, nil
}

// noticeInterrupt writes the effect of the first interrupt and of a second one.
func noticeInterrupt(interrupt <-chan struct{}, quiet <-chan struct{}, out io.Writer) {
	select {
	case <-interrupt:
		_, _ = fmt.Fprintln(out, "stopping after the current change; interrupt again to stop at once")
	case <-quiet:
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

// end returns the exit code, after a reboot that is required and allowed.
func (o *applyFlags) end(ctx context.Context, result report.Report, s streams) error {
	switch {
	case result.ExitCode == report.ExitOK:
		return nil
	case result.ExitCode == report.ExitReboot && o.reboot:
		_, _ = fmt.Fprintln(s.err, "rebooting; the run resumes after the reboot") // standard error is the last resort
		if err := launch.Reboot(context.WithoutCancel(ctx)); err != nil {
			return &exitError{
				code: report.ExitReboot, message: fmt.Sprintf("the reboot failed: %s", err),
				hint: "reboot the machine: the run resumes after the reboot",
			}
		}
	}
	return &exitError{code: result.ExitCode}
}

// endAll ends all plugins and their processes.
func endAll(fleet *launch.Fleet, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := fleet.KillAll(ctx); err != nil {
		log.Error("processes of a plugin cannot be ended", "error", err)
	}
}

// killTimeout bounds the wait for killed processes: one in uninterruptible sleep does not end.
const killTimeout = 30 * time.Second

// fleet returns the plugins of the catalog, started on demand.
func (g *globals) fleet(where *place, log *slog.Logger) (*launch.Fleet, error) {
	c, err := g.catalog()
	if err != nil {
		return nil, err
	}
	sockets, err := where.socketDir()
	if err != nil {
		return nil, err
	}
	tree, err := proctree.Contain()
	if err != nil {
		return nil, &exitError{code: report.ExitFailed, message: "contain the processes of plugins: " + err.Error()}
	}
	o := launch.Options{
		Log: log, SocketDir: sockets, Environment: contractlaunch.Environment(runtime.GOOS, g.lookupEnv),
		Root: where.root, Target: where.target, Tree: tree, Digests: where.digests(log),
	}
	if where.lock != nil {
		o.Inherit = []*os.File{where.lock.File()}
	}
	return launch.NewFleet(c, o), nil
}

// runsPlugins says whether plugins can run on this operating system. On any other, a stream can be validated in part.
func runsPlugins() bool { return slices.Contains(target.OperatingSystems(), runtime.GOOS) }

// catalog returns the plugin directories of the flags and the platform.
func (g *globals) catalog() (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Options{
		First: g.pluginDirs, Beside: g.beside, Fixed: naming.SearchDirectories(runtime.GOOS),
		Path: g.searchPath(), PluginsOnPath: g.pluginsOnPath,
	})
	if err != nil {
		return nil, usage(err.Error())
	}
	return c, nil
}
