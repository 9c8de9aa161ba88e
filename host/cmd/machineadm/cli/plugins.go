package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/visible"
)

func newPlugins(g *globals, s streams) *cobra.Command {
	c := &cobra.Command{Use: "plugins", Short: "Show the installed plugins, and begin a new one"}
	onlyOthers(c)
	output := "text"
	list := &cobra.Command{
		Use: "list", Short: "List the installed plugins and whether they are trusted", Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return g.pluginsList(s, output) },
	}
	inspect := &cobra.Command{
		Use: "inspect [BINARY...]", Short: "Start plugins and show what they serve and how they fit this machine",
		Long: "inspect starts the named plugins, or all that are trusted, and shows what they serve and how they fit this machine.\n" +
			"BINARY is a name as plugins list shows it. A plugin that is not trusted is not started.",
		Example: "  machineadm plugins inspect machineadm-sysctl-plugin-procfs", Args: pluginNames,
		RunE: func(c *cobra.Command, names []string) error { return g.pluginsInspect(c.Context(), s, output, names) },
	}
	for _, sub := range []*cobra.Command{list, inspect} {
		sub.Flags().StringVarP(&output, "output", "o", "text", "`FORMAT` of the output: text, json")
	}
	c.AddCommand(list, inspect, newPluginsNew(s))
	return c
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
}

func (g *globals) pluginsList(s streams, output string) error {
	if err := checkOutput(output); err != nil {
		return err
	}
	infos, problems, err := g.installed(nil)
	if err != nil {
		return err
	}
	if err := show(s.out, output, infos, func(w io.Writer) error {
		for _, i := range infos {
			state := "trusted"
			if !i.Trusted {
				state = "UNTRUSTED: " + reporting.Escape(i.Problem) + "; " + reporting.Escape(i.Remedy)
			}
			if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", i.Binary, reporting.Escape(i.Path), state); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return listProblems(s, problems, infos)
}

// installed lists and judges every plugin, or those named.
func (g *globals) installed(names []string) ([]pluginInfo, []error, error) {
	c, err := g.catalog()
	if err != nil {
		return nil, nil, err
	}
	var plugins []catalog.Plugin
	var problems []error
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
	infos := []pluginInfo{}
	for _, p := range plugins {
		infos = append(infos, judge(c, p))
	}
	return infos, problems, nil
}

func judge(c *catalog.Catalog, p catalog.Plugin) pluginInfo {
	info := pluginInfo{Binary: p.Binary, Path: p.Path}
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

func listProblems(s streams, problems []error, infos []pluginInfo) error {
	code := report.ExitOK
	if len(problems)+len(infos) == 0 {
		_, _ = fmt.Fprintln(s.err, "no plugin is installed") // nowhere else to say it
	}
	for _, problem := range problems {
		(&exitError{message: problem.Error(), hint: launch.Hint(problem)}).show(s.err)
		code = launch.ExitCode(problem)
	}
	for _, i := range infos {
		if !i.Trusted {
			code = report.ExitUntrusted
		} else if i.Problem != "" && code == report.ExitOK {
			code = report.ExitFailed
		}
	}
	if code != report.ExitOK {
		return &exitError{code: code}
	}
	return nil
}

func (g *globals) pluginsInspect(ctx context.Context, s streams, output string, names []string) error {
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
	infos, problems, err := g.installed(names)
	if err != nil {
		return err
	}
	if err := g.inspect(ctx, where, log, infos); err != nil {
		return err
	}
	if err := show(s.out, output, infos, func(w io.Writer) error {
		for _, i := range infos {
			if err := i.write(w); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return listProblems(s, problems, infos)
}

// inspect starts the plugins that are trusted, and no other.
func (g *globals) inspect(ctx context.Context, where *place, log *slog.Logger, infos []pluginInfo) error {
	fleet, err := g.fleet(where, log)
	if err != nil {
		return err
	}
	defer endAll(fleet, log)
	for n := range infos {
		i := &infos[n]
		if !i.Trusted {
			continue
		}
		started, err := fleet.Start(ctx, catalog.Plugin{Binary: i.Binary, Path: i.Path})
		if err != nil {
			i.Problem = err.Error()
			var broken *launch.StartError
			if errors.As(err, &broken) {
				i.Stderr = broken.Stderr
			}
			continue
		}
		d := started.Description
		i.Version, i.Fitness, i.Reason = d.Version, d.Fitness.String(), d.FitnessReason
		for _, k := range d.Kinds {
			i.Kinds = append(i.Kinds, fmt.Sprintf("%s of %s (%s)", k.Kind, k.APIVersion, k.Phase))
		}
	}
	return nil
}

func (i pluginInfo) write(w io.Writer) error {
	rows := [][2]string{{"path", i.Path}, {"sha256", i.SHA256}, {"version", i.Version}, {"fitness", i.Fitness}}
	if i.Reason != "" {
		rows[3][1] += ": " + i.Reason
	}
	rows = append(rows, [2]string{"serves", strings.Join(i.Kinds, ", ")}, [2]string{"problem", i.Problem}, [2]string{"remedy", i.Remedy})
	if _, err := fmt.Fprintln(w, i.Binary); err != nil {
		return err
	}
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "  %s\t%s\n", row[0], reporting.Escape(row[1])); err != nil {
			return err
		}
	}
	for line := range strings.Lines(i.Stderr) {
		if _, err := fmt.Fprintf(w, "  stderr\t%s\n", reporting.Escape(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}

// show writes infos as JSON or as a table.
func show(out io.Writer, output string, infos []pluginInfo, table func(io.Writer) error) error {
	if output == "json" {
		encoder := json.NewEncoder(visible.Writer{Out: out})
		encoder.SetIndent("", "  ")
		return encoder.Encode(infos)
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if err := table(w); err != nil {
		return err
	}
	return w.Flush()
}
