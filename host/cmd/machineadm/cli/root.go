// Package cli is the command line of machineadm.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/proctree"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/internal/visible"
)

// streams are the standard streams of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// globals are the flags that every command takes.
type globals struct {
	logLevel, logFormat string
	stateDir, runDir    string
	pluginDirs          []string
	beside              string // the directory of this program if plugins lie in it
	pluginsOnPath       bool
	timeout             time.Duration
	kept                *journal.Pending // the run that is gone on with; nil when none is
}

// What the log is like unless flags say otherwise.
const (
	defaultLogLevel  = "warn"
	defaultLogFormat = "text"
)

// exitError ends the process with a code. The message, if there is one, was not shown yet.
type exitError struct {
	code          int
	message, hint string
}

// Error is the message.
func (e *exitError) Error() string { return e.message }

// show writes the message and what to do about it.
func (e *exitError) show(w io.Writer) {
	if e.message == "" {
		return
	}
	_, _ = fmt.Fprintln(w, "error: "+reporting.EscapeLines(e.message)) // nowhere else to say it
	if e.hint != "" {
		_, _ = fmt.Fprintln(w, "  hint: "+reporting.Escape(e.hint)) // nor this
	}
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, err io.Writer) int {
	if dumpErr := proctree.NoCoreDumps(); dumpErr != nil { // a dump would hold the secrets of the stream
		_, _ = fmt.Fprintln(err, "warning: core dumps stay on:", dumpErr) // nowhere else to say it
	}
	debug.SetTraceback("crash")    // a panic would end with 2, which promises that nothing was changed
	signal.Ignore(syscall.SIGPIPE) // a closed pipe must not end a run half-way
	return Execute(context.Background(), args, streams{in: in, out: out, err: err})
}

// Execute is Main without the process around it.
func Execute(ctx context.Context, args []string, s streams) int {
	root := NewRoot(s.in, s.out, s.err)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return report.ExitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) { // not foreseen: standard output that cannot be written
		exit = &exitError{code: report.ExitFailed, message: err.Error()}
	}
	exit.show(s.err)
	return exit.code
}

// NewRoot is the tree of commands. The generator of the manual pages walks it too.
func NewRoot(in io.Reader, out, errOut io.Writer) *cobra.Command {
	s := streams{in: in, out: out, err: errOut}
	g := &globals{beside: beside()}
	o := &applyFlags{output: "text", phase: "all", reboot: true}
	bootstrap := false
	root := &cobra.Command{
		Use:   "machineadm",
		Short: "Prepare this machine to be a Kubernetes node",
		Long: "machineadm reads a stream of documents that say what a Kubernetes node must be, and drives a plugin for\n" +
			"each of them, in order, until the machine is so. It can be repeated at any time.",
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return g.check(c.Flags())
		},
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case bootstrap:
				return g.apply(c.Context(), s, o)
			case c.Flags().Changed("path"):
				return usage("--path alone does nothing: give a command, such as apply, or --bootstrap")
			}
			return c.Help()
		},
	}
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("machineadm {{.Version}}\n")
	f := root.Flags()
	f.BoolVar(&bootstrap, "bootstrap", false, "apply the stream at first boot: apply --reboot")
	f.StringVar(&o.path, "path", "", "with --bootstrap: the stream's `FILE`, or - for standard input")
	g.bind(root.PersistentFlags())
	root.AddCommand(newApply(g, s), newPlan(g, s), newValidate(g, s), newStatus(g, s), newExplain(g, s), newPlugins(g, s), newVersion(s))
	root.InitDefaultCompletionCmd() // now, so that it has its manual page
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			onlyOthers(c)
		}
	}
	return root
}

// onlyOthers is for a command that only has others: alone it shows its help.
func onlyOthers(c *cobra.Command) {
	c.Args = knownCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

func (g *globals) bind(p *pflag.FlagSet) {
	p.StringVar(&g.logLevel, "log-level", defaultLogLevel, "`LEVEL` of the log on standard error: debug, info, warn, error")
	p.StringVar(&g.logFormat, "log-format", defaultLogFormat, "`FORMAT` of the log: text, json")
	p.StringVar(&g.stateDir, "state-dir", "", "`DIR` for what must outlive a run (default: "+defaultStateDir()+"; with --root a temporary one)")
	p.StringVar(&g.runDir, "run-dir", "", "`DIR` for the report and the lock (default: "+defaultRunDir()+"; with --root a temporary one)")
	p.StringArrayVar(&g.pluginDirs, "plugin-dir", nil, "`DIR` to look for plugins in first; may be repeated")
	p.BoolVar(&g.pluginsOnPath, "plugins-on-path", false, "look for plugins in the absolute directories of PATH too, last")
	p.DurationVar(&g.timeout, "timeout", run.RunTimeout, "how long the whole run may take")
}

func newVersion(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(s.out, "machineadm %s\n", version.String())
			return err
		},
	}
}

// logger is the log on standard error. Its handlers quote what could forge a line; the writer escapes what they leave.
func (g *globals) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(g.logLevel)); err != nil || strings.ContainsAny(g.logLevel, "+-") {
		return nil, usage("--log-level takes debug, info, warn or error")
	}
	options := &slog.HandlerOptions{Level: level}
	w = visible.Writer{Out: w}
	switch g.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, usage("--log-format takes text or json")
}

// interrupts closes the first channel at the first signal that asks for an end, and cancels at the second.
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
