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

// applyFlags are the flags of the commands that read a stream.
type applyFlags struct {
	path, root, phase, output    string
	dryRun, reboot, allowSecrets bool
	resume                       bool
}

func newApply(g *globals, s streams) *cobra.Command {
	o := &applyFlags{}
	c := &cobra.Command{
		Use: "apply {--path FILE | --resume}", Short: "Make this machine, or an image root, what a stream describes", Args: noArguments,
		Example: "  machineadm apply --path /run/machineadm/config.yaml\n  machineadm apply --path node.yaml --root /mnt/image --phase preparation",
		RunE: func(c *cobra.Command, _ []string) error {
			if o.dryRun {
				return g.plan(c.Context(), s, o)
			}
			return g.apply(c.Context(), s, o)
		},
	}
	o.bind(c, true)
	c.Flags().StringVar(&o.phase, "phase", "all", "`PHASE` to apply: preparation, provisioning, all")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "show what would change, and change nothing: plan")
	c.Flags().BoolVar(&o.reboot, "reboot", false, "reboot the machine when a change needs it")
	c.Flags().BoolVar(&o.allowSecrets, "allow-secrets", false, "with --root: let documents that hold secrets into the image")
	c.Flags().BoolVar(&o.resume, "resume", false, "go on with the run whose stream was kept over a reboot, instead of --path")
	return c
}

func newPlan(g *globals, s streams) *cobra.Command {
	o := &applyFlags{}
	c := &cobra.Command{
		Use: "plan --path FILE", Short: "Show what apply would change, as a diff", Args: noArguments,
		Long: "plan shows what apply would change. It exits with 0 when there is nothing to change, and with 10 when there is.",
		RunE: func(c *cobra.Command, _ []string) error { return g.plan(c.Context(), s, o) },
	}
	o.bind(c, true)
	c.Flags().StringVar(&o.phase, "phase", "all", "`PHASE` to plan: preparation, provisioning, all")
	c.Flags().BoolVar(&o.allowSecrets, "allow-secrets", false, "with --root: accept documents that hold secrets")
	return c
}

func newValidate(g *globals, s streams) *cobra.Command {
	o := &applyFlags{phase: "all"}
	c := &cobra.Command{
		Use: "validate --path FILE", Short: "Find the configuration errors of a stream", Args: noArguments,
		Long: "validate finds the configuration errors of a stream. It needs no privileges and looks at nothing of the machine.",
		RunE: func(c *cobra.Command, _ []string) error { return g.validate(c.Context(), s, o) },
	}
	o.bind(c, false)
	return c
}

func (o *applyFlags) bind(c *cobra.Command, root bool) {
	c.Flags().StringVar(&o.path, "path", "", "the stream's `FILE`, or - for standard input")
	c.Flags().StringVarP(&o.output, "output", "o", "text", "`FORMAT` of the output: text, json")
	if root {
		c.Flags().StringVar(&o.root, "root", "", "`DIR` of an image to prepare instead of the live machine")
	}
}

func (g *globals) apply(ctx context.Context, s streams, o *applyFlags) error {
	observe, s, end := o.show(s)
	defer end()
	return g.drive(ctx, s, o, run.ModeApply, observe)
}

func (g *globals) plan(ctx context.Context, s streams, o *applyFlags) error {
	color, end := coloring(s.out)
	defer end()
	text := reporting.Plan{Out: s.out, Err: s.err, Root: o.root, Color: color}
	return g.drive(ctx, s, o, run.ModePlan, choose(o, s.out, text.Observe))
}

func (g *globals) validate(ctx context.Context, s streams, o *applyFlags) error {
	observe := func(e run.Event) {
		if e.Type != run.EventRunFinished {
			return
		}
		reporting.Errors(s.err, e.Report)
		if e.Report.ExitCode == report.ExitOK {
			_, _ = io.WriteString(s.out, reporting.ValidSummary(e.Report)+"\n") // nowhere else to say it
		}
		if !runsPlugins() {
			_, _ = io.WriteString(s.err, "warning: no plugin runs on "+runtime.GOOS+": only the syntax, and the fields of known kinds, were checked\n")
		}
	}
	return g.drive(ctx, s, o, run.ModeValidate, choose(o, s.out, observe))
}

// choose is the observer of this output.
func choose(o *applyFlags, out io.Writer, text func(run.Event)) func(run.Event) {
	if o.output == "json" {
		return reporting.JSON{Out: out}.Observe
	}
	return text
}
