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
	"sync"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/trust"
)

func newPlugins(g *globals, s streams) *cobra.Command {
	c := &cobra.Command{Use: "plugins", Short: "Show the installed plugins, or create a new one"}
	makeGroup(c)
	output := ""
	list := &cobra.Command{
		Use: "list", Short: "List the installed plugins, their kinds and their fitness for this machine", Args: noArguments,
		Long: "list starts every trusted plugin and shows a line for each kind that it serves. FITNESS is how the provider fits this\n" +
			"machine: active, installed, absent or unsupported.",
		RunE: func(c *cobra.Command, _ []string) error {
			return g.pluginsShow(c.Context(), s, output, nil, writeTable)
		},
	}
	inspect := &cobra.Command{
		Use: "inspect [BINARY...]", Short: "Start plugins and show their kinds and their fitness for this machine",
		Long: "inspect starts the given plugins, by default all trusted ones, and shows their kinds and their fitness for this machine.\n" +
			"BINARY is the file name of a plugin. An untrusted plugin is not started.",
		Example: "  machineadm plugins inspect machineadm-sysctl-plugin-procfs", Args: pluginNames,
		ValidArgsFunction: g.completePlugins,
		RunE: func(c *cobra.Command, names []string) error {
			return g.pluginsShow(c.Context(), s, output, names, writeDetails)
		},
	}
	for _, sub := range []*cobra.Command{list, inspect} {
		bindOutput(sub, &output)
	}
	c.AddCommand(list, inspect, newPluginsNew(s))
	return c
}

// completePlugins offers the installed plugins that are not given yet.
func (g *globals) completePlugins(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if c, err := g.catalog(); err == nil {
		plugins, _ := c.List() // a completion cannot show errors
		for _, p := range plugins {
			if !slices.Contains(given, p.Binary) {
				names = append(names, p.Binary)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// beside returns the directory of this program, if it contains plugins.
func beside() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	return catalog.Beside(program)
}

func pluginNames(_ *cobra.Command, names []string) error {
	for _, name := range names {
		if !naming.IsPlugin(runtime.GOOS, naming.File(runtime.GOOS, name)) {
			return usage(fmt.Sprintf("%q is not the name of a plugin, as machineadm plugins list shows them", name))
		}
	}
	return nil
}

// installed finds and checks the named plugins, or all.
func installed(c *catalog.Catalog, names []string) (infos []pluginInfo, problems []error) {
	var plugins []catalog.Plugin
	if len(names) == 0 {
		plugins, problems = c.List()
	}
	for _, name := range names {
		p, err := c.Find(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		plugins = append(plugins, p)
	}
	infos = []pluginInfo{}
	for _, p := range plugins {
		infos = append(infos, check(c, p))
	}
	return infos, problems
}

func check(c *catalog.Catalog, p catalog.Plugin) pluginInfo {
	info := pluginInfo{Binary: p.Binary, Path: p.Path, plugin: p}
	file, err := c.Open(p)
	if err != nil {
		info.Problem = err.Error()
		var refused *trust.Error
		if errors.As(err, &refused) {
			info.Problem, info.Remedy = refused.Path+": "+refused.Problem, refused.Remedy
		}
		return info
	}
	defer func() { _ = file.Close() }() // opened for reading only
	info.Trusted = true
	if info.SHA256, err = catalog.Digest(file); err != nil {
		info.Problem = err.Error()
	}
	return info
}

// pluginsShow starts the named plugins, or all, and shows their descriptions.
func (g *globals) pluginsShow(
	ctx context.Context, s streams, output string, names []string, text func(io.Writer, []pluginInfo) error,
) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	log, err := g.logger(s.err)
	if err != nil {
		return err
	}
	where, err := g.open(ctx, log, "", run.ModePlan)
	if err != nil {
		return err
	}
	defer where.close()
	c, err := g.catalog()
	if err != nil {
		return err
	}
	infos, problems := installed(c, names)
	if err := g.inspect(ctx, where, log, infos); err != nil {
		return err
	}
	if err := show(s.out, output, infos, text); err != nil {
		return err
	}
	return listProblems(s, c.Directories(), problems, infos)
}

// inspect starts the trusted plugins concurrently.
func (g *globals) inspect(ctx context.Context, where *place, log *slog.Logger, infos []pluginInfo) error {
	if len(infos) == 0 {
		return nil
	}
	fleet, err := g.fleet(where, log)
	if err != nil {
		return err
	}
	defer endAll(fleet, log)
	var wait sync.WaitGroup
	for n := range infos {
		if infos[n].Trusted {
			wait.Go(func() { infos[n].describe(ctx, fleet) })
		}
	}
	wait.Wait()
	return nil
}

// describe starts a plugin and adds its description.
func (i *pluginInfo) describe(ctx context.Context, fleet *launch.Fleet) {
	started, err := fleet.Start(ctx, i.plugin)
	if err != nil {
		i.Problem = err.Error()
		var broken *launch.StartError
		if errors.As(err, &broken) {
			i.Stderr = broken.Stderr
		}
		return
	}
	d := started.Description
	i.Version, i.Fitness, i.Reason = d.Version, d.Fitness.String(), d.FitnessReason
	for _, k := range d.Kinds {
		i.kindNames = append(i.kindNames, k.Kind)
		i.Kinds = append(i.Kinds, fmt.Sprintf("%s of %s (%s)", k.Kind, k.APIVersion, k.Phase))
	}
}
