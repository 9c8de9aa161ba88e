// Package cli is the command line of machineadm.
package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/session"
	"github.com/machineadm/machineadm/internal/version"
)

// Main runs the command line and returns the exit code.
func Main(args []string, in io.Reader, out, err io.Writer) int {
	debug.SetTraceback("crash") // otherwise a panic exits with 2, which means that nothing was changed
	// A closed pipe must not end a run. The signal is handled, because an ignored one stays ignored in the programs that plugins start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return Execute(context.Background(), args, streams{in: in, out: out, err: err})
}

// Execute is Main without settings of the process.
func Execute(ctx context.Context, args []string, s streams) int {
	s.width = columns(s.err)
	root := newRoot(s)
	root.AddCommand(ofKubeadm()...)
	root.SetArgs(args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		prepareCompletion(root)
	}
	c, err := root.ExecuteContextC(ctx)
	if err == nil || brokenPipe(err) { // head has what it wants
		return report.ExitOK
	}
	exit := exitOf(c, err)
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
	g := &globals{beside: session.Beside()}
	o := &applyFlags{output: "text", phase: "all", reboot: true}
	bootstrap, asked := false, false
	root := &cobra.Command{
		Use:   "machineadm",
		Short: "Prepare this machine to be a Kubernetes node",
		Long: "machineadm reads a stream of documents that describe the desired state of a Kubernetes node, and runs a plugin\n" +
			"for each document, in order, until the machine matches. It can be repeated at any time.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			return g.check(c.Flags())
		},
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case asked:
				return showVersion(s)
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
	f := root.Flags()
	// cobra's own flag needs text/template, by which the linker keeps every exported method of every type.
	f.BoolVarP(&asked, "version", "v", false, "show the version")
	f.BoolVar(&bootstrap, "bootstrap", false, "apply the stream at first boot: apply --reboot")
	f.StringVarP(&o.path, "path", "f", "", "with --bootstrap: the stream's `FILE`, or - for standard input")
	g.bind(root.PersistentFlags())
	complete(root, "log-level", "debug", "info", "warn", "error")
	complete(root, "log-format", "text", "json")
	for _, dir := range []string{"state-dir", "run-dir", "plugin-dir"} {
		_ = root.MarkPersistentFlagDirname(dir) // the flag exists
	}
	root.AddCommand(newApply(g, s), newPlan(g, s), newValidate(g, s), newStatus(g, s), newExplain(g, s), newPlugins(g, s),
		newEncrypt(g, s), newDecrypt(g, s), newResolve(g, s), newReport(g, s), newInstall(g, s), newMirror(g, s), newClean(g, s), newSeal(g, s), newVersion(s))
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
			return showVersion(s)
		},
	}
	bindOutput(c, &output)
	return c
}

func showVersion(s streams) error {
	_, err := fmt.Fprintf(s.out, "machineadm %s\n", version.String())
	return err
}
