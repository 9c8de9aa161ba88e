package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/session"
)

func newApply(g *globals, s streams) *cobra.Command {
	o := &applyFlags{}
	c := &cobra.Command{
		Use: "apply {--path FILE | --resume}", Short: "Apply a stream to this machine or to an image root", Args: noArguments,
		Example: "  machineadm apply --path /run/machineadm/config.yaml\n  machineadm apply --path node.yaml --root /mnt/image --phase preparation",
		RunE: func(c *cobra.Command, _ []string) error {
			if o.dryRun {
				return g.plan(c.Context(), s, o)
			}
			return g.apply(c.Context(), s, o)
		},
	}
	o.bind(c, "prepare")
	o.bindPhase(c, "apply")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would change without changing it: plan")
	c.Flags().BoolVar(&o.reboot, "reboot", false, "reboot the machine when a change needs it")
	c.Flags().BoolVar(&o.allowSecrets, "allow-secrets", false, "with --root: accept documents with secrets")
	c.Flags().BoolVar(&o.resume, "resume", false, "resume the run whose stream was saved before a reboot, instead of --path")
	return c
}

func newPlan(g *globals, s streams) *cobra.Command {
	o := &applyFlags{}
	c := &cobra.Command{
		Use: "plan --path FILE", Short: "Show what apply would change, as a diff", Args: noArguments,
		Long:    "plan shows what apply would change. The exit code is 0 if nothing would change, and 10 otherwise.",
		Example: "  machineadm plan --path /etc/machineadm/node.yaml\n  machineadm plan --path node.yaml --root /mnt/image",
		RunE:    func(c *cobra.Command, _ []string) error { return g.plan(c.Context(), s, o) },
	}
	o.bind(c, "prepare")
	o.bindPhase(c, "plan")
	c.Flags().BoolVar(&o.allowSecrets, "allow-secrets", false, "with --root: accept documents with secrets")
	return c
}

func newValidate(g *globals, s streams) *cobra.Command {
	o := &applyFlags{phase: "all"}
	c := &cobra.Command{
		Use: "validate --path FILE", Short: "Find the configuration errors of a stream", Args: noArguments,
		Long: "validate finds the configuration errors of a stream. It needs no privileges, and the state of the machine does not matter.\n" +
			"A document that names no provider is wrong if every installed provider for this system refuses it. A document for other\n" +
			"operating systems alone is compared with the schema of its kind, and a warning says so. With --root, the image decides which\n" +
			"operating system, distribution and init system the documents are for.",
		Example: "  machineadm validate --path node.yaml\n  generate-stream | machineadm validate --path - --root /mnt/image",
		RunE:    func(c *cobra.Command, _ []string) error { return g.validate(c.Context(), s, o) },
	}
	o.bind(c, "validate for")
	return c
}

func (g *globals) apply(ctx context.Context, s streams, o *applyFlags) error {
	observe, s, end := o.show(s)
	defer end()
	return g.drive(ctx, s, o, run.ModeApply, observe)
}

// drive executes one run, from the flags to the exit code.
func (g *globals) drive(ctx context.Context, s streams, o *applyFlags, mode run.Mode, observe func(run.Event)) error {
	if err := o.check(); err != nil {
		return err
	}
	options, err := g.session(s)
	if err != nil {
		return err
	}
	ctx, interrupt, restore := interrupts(ctx)
	defer restore()
	in := session.Input{
		Mode: mode, Path: o.path, In: s.in, Root: o.root, Phase: o.phase, Resume: o.resume, Reboot: o.reboot, AllowSecrets: o.allowSecrets,
		ResolveOnly: o.resolveOnly, Interrupt: interrupt, Observe: observe,
		Idle: func(stateDir string, r report.Report) error { return o.idle(s, stateDir, r, observe) },
	}
	if live, ok := s.out.(*reporting.Live); ok {
		in.Interrupted = func() {
			_, _ = fmt.Fprintln(live, "stopping after the current change; interrupt again to stop at once")
		}
	}
	result, err := session.Run(ctx, options, in)
	switch {
	case err != nil:
		return o.unopened(err, observe)
	case result.ExitCode != report.ExitOK:
		return &exitError{code: result.ExitCode}
	}
	return nil
}

// idle shows that no run is pending to be resumed.
func (o *applyFlags) idle(s streams, stateDir string, r report.Report, observe func(run.Event)) error {
	if o.output == "json" {
		observe(run.Event{Type: run.EventRunFinished, Time: r.FinishedAt, Report: &r})
		return nil
	}
	_, err := fmt.Fprintf(s.out, "nothing to resume in %s\n", stateDir)
	return err
}

// unopened reports, with --output json, an error before the run as an event.
func (o *applyFlags) unopened(err error, observe func(run.Event)) error {
	e, ok := errors.AsType[*report.Error](err)
	if o.output != "json" || !ok {
		return err
	}
	now := time.Now().UTC()
	observe(run.Event{Type: run.EventRunFinished, Time: now, Report: &report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, StartedAt: now, FinishedAt: now, Outcome: report.RunFailed,
		ExitCode: report.ExitCode(e.Code), Errors: []report.Error{*e}, Documents: []report.Document{},
	}})
	return err
}

func (g *globals) plan(ctx context.Context, s streams, o *applyFlags) error {
	color, end := coloring(s.out)
	defer end()
	text := reporting.Plan{Out: s.out, Err: s.err, Root: o.root, Color: color, Width: s.width}
	return g.drive(ctx, s, o, run.ModePlan, choose(o, s.out, text.Observe))
}

func (g *globals) validate(ctx context.Context, s streams, o *applyFlags) error {
	observe := func(e run.Event) {
		if e.Type == run.EventWarning {
			color, end := coloring(s.err)
			reporting.Text{Out: s.err, Err: s.err, Width: s.width, Color: color}.Observe(e)
			end()
		}
		if e.Type != run.EventRunFinished {
			return
		}
		reporting.Errors(s.err, e.Report, s.width)
		if e.Report.ExitCode == report.ExitOK {
			_, _ = io.WriteString(s.out, reporting.ValidSummary(e.Report)+"\n") // the exit code reports success too
		}
		if !session.RunsPlugins() {
			_, _ = io.WriteString(s.err, "warning: no plugin runs on "+runtime.GOOS+": only the syntax, and the fields of known kinds, were checked\n")
		}
	}
	return g.drive(ctx, s, o, run.ModeValidate, choose(o, s.out, observe))
}

// choose returns the observer for the output format.
func choose(o *applyFlags, out io.Writer, text func(run.Event)) func(run.Event) {
	if o.output == "json" {
		return reporting.JSON{Out: out}.Observe
	}
	return text
}

// show returns the observer of an apply: lines of text, on a terminal with a status line below. Other output during the run
// must use the returned streams. The caller calls end.
func (o *applyFlags) show(s streams) (observe func(run.Event), _ streams, end func()) {
	lines := reporting.Text{Out: s.out, Err: s.err, Width: s.width}.Observe
	if o.output != "text" {
		return choose(o, s.out, lines), s, func() {}
	}
	restore, _, ok := openTerminal(s.out)
	if !ok {
		return lines, s, func() {}
	}
	failures := s.err
	if sameFile(s.out, s.err) {
		failures = nil
	}
	live := reporting.NewLive(s.out, colors(), failures, s.width)
	s.out = live
	if failures == nil {
		s.err = live
	}
	return live.Observe, s, func() {
		live.Close()
		restore()
	}
}
