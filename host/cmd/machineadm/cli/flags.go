package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/explain"
)

// flagError returns the usage error for a syntax error of the flags.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(c, unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames())
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		takes := map[string]string{"duration": "a duration, such as 90s or 30m", "bool": "true or false"}
		if form, ok := takes[wrong.GetFlag().Value.Type()]; ok {
			return usage(fmt.Sprintf("--%s takes %s, not %q", wrong.GetFlag().Name, form, wrong.GetValue()))
		}
	}
	return usage(err.Error())
}

func unknownFlag(c *cobra.Command, name, shorthands string) error {
	if name == "bootstrap" {
		return usage("--bootstrap takes no command: machineadm --bootstrap --path FILE means apply --reboot")
	}
	if shorthands != "" {
		return usage(fmt.Sprintf("%s has no flag -%s", c.CommandPath(), name))
	}
	message := fmt.Sprintf("%s has no flag --%s", c.CommandPath(), name)
	for _, other := range c.Root().Commands() {
		if other.Flags().Lookup(name) != nil {
			return usage(message + "; " + other.CommandPath() + " has it")
		}
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := document.Nearest(name, known); near != "" {
		message += "; did you mean --" + near + "?"
	}
	return usage(message)
}

// ofKubeadm returns hidden commands in the place of kubeadm's, which name the document instead.
func ofKubeadm() []*cobra.Command {
	var out []*cobra.Command
	for name, instead := range map[string]string{
		"init":  "a KubernetesNode document of a stream with role: controlPlaneInit creates a cluster",
		"join":  "a KubernetesNode document of a stream joins a cluster",
		"reset": "a KubernetesNode document makes a machine a node, and kubeadm reset undoes that",
	} {
		out = append(out, &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(*cobra.Command, []string) error {
			return &report.Error{
				Code: report.CodeUsage, Message: fmt.Sprintf("machineadm has no command %q: %s", name, instead),
				Hint: "machineadm explain KubernetesNode shows its fields; machineadm apply --path FILE applies the stream",
			}
		}})
	}
	return out
}

// knownCommand refuses arguments, which are unknown commands.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // an edit distance
	message := fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
	if similar := c.SuggestionsFor(args[0]); len(similar) > 0 {
		message += "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usage(message)
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s takes no arguments: %q", c.CommandPath(), args[0])
	if c.Flags().Lookup("path") != nil {
		message += "; give the stream with --path"
	}
	return usage(message)
}

func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return usage("--output takes text or json")
	}
	return nil
}

// makeGroup makes a command show its help, because it only has subcommands.
func makeGroup(c *cobra.Command) {
	c.Args = knownCommand
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
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

// completeKinds offers the kinds of this release.
func completeKinds(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(given) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return explain.Complete(""), cobra.ShellCompDirectiveNoFileComp
}
