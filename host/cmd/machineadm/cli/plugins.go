package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/session"
)

func newPlugins(g *globals, s streams) *cobra.Command {
	c := &cobra.Command{Use: "plugins", Short: "Show the installed plugins, or create a new one"}
	makeGroup(c)
	output, root := "", ""
	list := &cobra.Command{
		Use: "list", Short: "List the installed plugins, their kinds and their fitness for this machine", Args: noArguments,
		Long: "list starts every trusted plugin and shows a line for each kind that it serves. FITNESS is how the provider fits this\n" +
			"machine, or the image of --root: active, installed, absent or unsupported.",
		RunE: func(c *cobra.Command, _ []string) error {
			return g.pluginsShow(c.Context(), s, output, root, nil, writeTable)
		},
	}
	inspect := &cobra.Command{
		Use: "inspect [BINARY...]", Short: "Start plugins and show their kinds and their fitness for this machine",
		Long: "inspect starts the given plugins, by default all trusted ones, and shows their kinds and their fitness for this machine.\n" +
			"BINARY is the file name of a plugin. An untrusted plugin is not started.",
		Example: "  machineadm plugins inspect machineadm-sysctl-plugin-procfs\n  machineadm plugins inspect --root /mnt/image", Args: func(_ *cobra.Command, names []string) error { return session.CheckNames(names) },
		ValidArgsFunction: g.completePlugins,
		RunE: func(c *cobra.Command, names []string) error {
			return g.pluginsShow(c.Context(), s, output, root, names, writeDetails)
		},
	}
	for _, sub := range []*cobra.Command{list, inspect} {
		bindOutput(sub, &output)
		bindRoot(sub, &root, "show the fitness for")
	}
	c.AddCommand(list, inspect, newPluginsNew(s))
	return c
}

// completePlugins offers the installed plugins that are not given yet.
func (g *globals) completePlugins(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	o, err := g.session(streams{err: io.Discard})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := slices.DeleteFunc(session.Binaries(o), func(name string) bool { return slices.Contains(given, name) })
	return names, cobra.ShellCompDirectiveNoFileComp
}

// pluginsShow starts the named plugins, or all, and shows their descriptions.
func (g *globals) pluginsShow(
	ctx context.Context, s streams, output, root string, names []string, text func(io.Writer, []session.Plugin) error,
) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	o, err := g.session(s)
	if err != nil {
		return err
	}
	p, err := session.Inspect(ctx, o, root, names)
	if err != nil {
		return err
	}
	if err := show(s.out, output, p.Found, text); err != nil {
		return err
	}
	return listProblems(s, p)
}
