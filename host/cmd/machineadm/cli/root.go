// Package cli is the command line of machineadm.
package cli

import (
	"context"
	"encoding/json"
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
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/proctree"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/internal/visible"
)

// streams are the standard streams of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
	width    int // of err, 0 if it is not a terminal
}

// globals are the flags of every command.
type globals struct {
	logLevel, logFormat string
	stateDir, runDir    string
	pluginDirs          []string
	beside              string // the directory of this program, if it contains plugins
	pluginsOnPath       bool
	timeout             time.Duration
	kept                *state.Pending // the run that is resumed, or nil
}

// Defaults of the log flags.
const (
	defaultLogLevel  = "warn"
	defaultLogFormat = "text"
)

// exitError ends the process with a code. A message is shown; without one, the error has been shown already.
type exitError struct {
	code          int
	message, hint string
	usage         bool // the hint is the help of the command
}

// Error returns the message.
func (e *exitError) Error() string { return e.message }

// show writes message and hint.
func (e *exitError) show(s streams) {
	if e.message != "" {
		_, _ = io.WriteString(s.err, reporting.Failure(e.message, e.hint, s.width)) // standard error is the last resort
	}
}

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, err io.Writer) int {
	if dumpErr := proctree.NoCoreDumps(); dumpErr != nil { // a dump would contain the secrets of the stream
		_, _ = fmt.Fprintln(err, "warning: core dumps cannot be disabled:", dumpErr) // standard error is the last resort
	}
	debug.SetTraceback("crash")    // otherwise a panic exits with 2, which means that nothing was changed
	signal.Ignore(syscall.SIGPIPE) // a closed pipe must not end a run
	return Execute(context.Background(), args, streams{in: in, out: out, err: err})
}

// Execute is Main without settings of the process.
func Execute(ctx context.Context, args []string, s streams) int {
	s.width = columns(s.err)
	root := newRoot(s)
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		prepareCompletion(root)
	}
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return report.ExitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) { // unexpected, such as a write error on standard output
		exit = &exitError{code: report.ExitFailed, message: err.Error()}
	}
	if exit.usage {
		exit.hint = "see " + c.CommandPath() + " --help"
	}
	exit.show(s)
	return exit.code
}

// prepareCompletion removes the marks of the value's name in flag descriptions, which a completion would show, and offers no
// files where a command takes none.
func prepareCompletion(c *cobra.Command) {
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	strip := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
	c.Flags().VisitAll(strip)
	c.PersistentFlags().VisitAll(strip)
	for _, sub := range c.Commands() {
		prepareCompletion(sub)
	}
}

// NewRoot returns the tree of commands, for the generator of the manual pages.
func NewRoot(in io.Reader, out, errOut io.Writer) *cobra.Command {
	return newRoot(streams{in: in, out: out, err: errOut})
}

func newRoot(s streams) *cobra.Command {
	g := &globals{beside: beside()}
	o := &applyFlags{output: "text", phase: "all", reboot: true}
	bootstrap := false
	root := &cobra.Command{
		Use:   "machineadm",
		Short: "Prepare this machine to be a Kubernetes node",
		Long: "machineadm reads a stream of documents that describe the desired state of a Kubernetes node, and runs a plugin\n" +
			"for each document, in order, until the machine matches. It can be repeated at any time.",
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
				return usage("--path needs a command, such as apply, or --bootstrap")
			}
			return c.Help()
		},
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("machineadm {{.Version}}\n")
	f := root.Flags()
	f.BoolVar(&bootstrap, "bootstrap", false, "apply the stream at first boot: apply --reboot")
	f.StringVarP(&o.path, "path", "f", "", "with --bootstrap: the stream's `FILE`, or - for standard input")
	g.bind(root.PersistentFlags())
	complete(root, "log-level", "debug", "info", "warn", "error")
	complete(root, "log-format", "text", "json")
	for _, dir := range []string{"state-dir", "run-dir", "plugin-dir"} {
		_ = root.MarkPersistentFlagDirname(dir) // the flag exists
	}
	root.AddCommand(newApply(g, s), newPlan(g, s), newValidate(g, s), newStatus(g, s), newExplain(g, s), newPlugins(g, s), newVersion(s))
	root.InitDefaultCompletionCmd() // now, for the manual page
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			makeGroup(c)
		case "help":
			c.Run, c.RunE = nil, help
		}
	}
	return root
}

// help shows the help of a command.
func help(c *cobra.Command, args []string) error {
	topic, rest, err := c.Root().Find(args)
	if err != nil {
		return usage(err.Error())
	}
	if err := knownCommand(topic, rest); err != nil {
		return err
	}
	topic.InitDefaultHelpFlag()
	return topic.Help()
}

// makeGroup makes a command show its help, because it only has subcommands.
func makeGroup(c *cobra.Command) {
	c.Args = knownCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

func (g *globals) bind(p *pflag.FlagSet) {
	p.StringVar(&g.logLevel, "log-level", defaultLogLevel, "`LEVEL` of the log on standard error: debug, info, warn, error")
	p.StringVar(&g.logFormat, "log-format", defaultLogFormat, "`FORMAT` of the log: text, json")
	p.StringVar(&g.stateDir, "state-dir", "", "`DIR` for state that outlives a run (default: "+defaultStateDir()+"; with --root a temporary one)")
	p.StringVar(&g.runDir, "run-dir", "", "`DIR` for the report and the lock (default: "+defaultRunDir()+"; with --root a temporary one, and the image itself is locked)")
	p.StringArrayVar(&g.pluginDirs, "plugin-dir", nil, "`DIR` to search for plugins first; may be repeated")
	p.BoolVar(&g.pluginsOnPath, "plugins-on-path", false, "search the absolute directories of PATH for plugins, last")
	p.DurationVar(&g.timeout, "timeout", run.RunTimeout, "time limit of the whole run, a `DURATION` such as 30m")
}

// complete offers the values of a flag in shell completion.
func complete(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// bindOutput adds the flag --output.
func bindOutput(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", "text", "`FORMAT` of the output: text, json")
	complete(c, "output", "text", "json")
}

func newVersion(s streams) *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use: "version", Short: "Show the version", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(s.out).Encode(map[string]string{"version": version.String()})
			}
			_, err := fmt.Fprintf(s.out, "machineadm %s\n", version.String())
			return err
		},
	}
	bindOutput(c, &output)
	return c
}

// logger returns the log on standard error. Its handlers quote text that could forge a line; the writer escapes the rest.
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
