package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/trust"
)

func newPlugins(g *globals, s streams) *cobra.Command {
	c := &cobra.Command{Use: "plugins", Short: "Show the installed plugins, and begin a new one"}
	onlyOthers(c)
	output := "text"
	list := &cobra.Command{
		Use: "list", Short: "List the installed plugins, what they serve and how they fit this machine", Args: noArguments,
		Long: "list starts every installed plugin that is trusted and shows a line for each kind that it serves. FITNESS is how the\n" +
			"provider fits this machine: active, installed, absent or unsupported.",
		RunE: func(c *cobra.Command, _ []string) error {
			return g.pluginsShow(c.Context(), s, output, nil, writeTable)
		},
	}
	inspect := &cobra.Command{
		Use: "inspect [BINARY...]", Short: "Start plugins and show what they serve and how they fit this machine",
		Long: "inspect starts the named plugins, or all that are trusted, and shows what they serve and how they fit this machine.\n" +
			"BINARY is the name of a plugin's file. A plugin that is not trusted is not started.",
		Example: "  machineadm plugins inspect machineadm-sysctl-plugin-procfs", Args: pluginNames,
		RunE: func(c *cobra.Command, names []string) error {
			return g.pluginsShow(c.Context(), s, output, names, writeDetails)
		},
	}
	for _, sub := range []*cobra.Command{list, inspect} {
		sub.Flags().StringVarP(&output, "output", "o", "text", "`FORMAT` of the output: text, json")
	}
	c.AddCommand(list, inspect, newPluginsNew(s))
	return c
}

// beside is the directory of this program if plugins lie in it.
func beside() string {
	program, err := os.Executable()
	if err != nil {
		return "" // the system does not say, and so there is none
	}
	return catalog.Beside(program)
}

func pluginNames(_ *cobra.Command, names []string) error {
	for _, name := range names {
		if !naming.IsPlugin(runtime.GOOS, naming.File(runtime.GOOS, name)) {
			return usage(fmt.Sprintf("%q is not the name of a plugin: machineadm plugins list shows some", name))
		}
	}
	return nil
}

// pluginInfo is one installed plugin, as plugins list and inspect show it.
type pluginInfo struct {
	Binary  string   `json:"binary"`
	Path    string   `json:"path"`
	Trusted bool     `json:"trusted"`
	Problem string   `json:"problem,omitempty"`
	Remedy  string   `json:"remedy,omitempty"`
	SHA256  string   `json:"sha256,omitempty"`
	Version string   `json:"version,omitempty"`
	Fitness string   `json:"fitness,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Kinds   []string `json:"kinds,omitempty"`
	Stderr  string   `json:"stderr,omitempty"` // the last words of one that could not be started

	plugin    catalog.Plugin
	kindNames []string
}

// installed lists and checks every plugin, or those named.
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
		infos = append(infos, judge(c, p))
	}
	return infos, problems
}

func judge(c *catalog.Catalog, p catalog.Plugin) pluginInfo {
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
	defer func() { _ = file.Close() }() // only read from
	info.Trusted = true
	if info.SHA256, err = catalog.Digest(file); err != nil {
		info.Problem = err.Error()
	}
	return info
}

// pluginsShow starts the named plugins, or all, and shows what they say of themselves.
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
	where, err := g.open(log, "", run.ModePlan)
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

// inspect starts the plugins that are trusted, side by side, and no other.
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
			wait.Go(func() { infos[n].ask(ctx, fleet) })
		}
	}
	wait.Wait()
	return nil
}

// ask starts a plugin and notes what it says of itself.
func (i *pluginInfo) ask(ctx context.Context, fleet *launch.Fleet) {
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
