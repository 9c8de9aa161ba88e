package cli

import (
	"context"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
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
	o.bind(c, true)
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
	o.bind(c, true)
	o.bindPhase(c, "plan")
	c.Flags().BoolVar(&o.allowSecrets, "allow-secrets", false, "with --root: accept documents with secrets")
	return c
}

func newValidate(g *globals, s streams) *cobra.Command {
	o := &applyFlags{phase: "all"}
	c := &cobra.Command{
		Use: "validate --path FILE", Short: "Find the configuration errors of a stream", Args: noArguments,
		Long: "validate finds the configuration errors of a stream. It needs no privileges and does not depend on the machine's state.\n" +
			"A document without a provider is wrong if every installed provider that can run here refuses it. Of a document for\n" +
			"other operating systems only the names and types of the fields are checked, with a warning.",
		Example: "  machineadm validate --path node.yaml\n  generate-stream | machineadm validate --path -",
		RunE:    func(c *cobra.Command, _ []string) error { return g.validate(c.Context(), s, o) },
	}
	o.bind(c, false)
	return c
}

func (g *globals) apply(ctx context.Context, s streams, o *applyFlags) error {
	observe, s, end := o.show(s)
	defer end()
	return g.drive(ctx, s, o, run.ModeApply, observe)
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
		if !runsPlugins() {
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
	errors := s.err
	if sameFile(s.out, s.err) {
		errors = nil
	}
	live := reporting.NewLive(s.out, colors(), errors, s.width)
	s.out = live
	if errors == nil {
		s.err = live
	}
	return live.Observe, s, func() {
		live.Close()
		restore()
	}
}
