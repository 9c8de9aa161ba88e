package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/run"
)

func newResolve(g *globals, s streams) *cobra.Command {
	o := &applyFlags{phase: "all", resolveOnly: true}
	c := &cobra.Command{
		Use: "resolve --path FILE", Short: "Show the documents of a stream and of its references", Args: noArguments,
		Long: "resolve fetches and decrypts the streams of RemoteConfig and EncryptedConfig documents, and shows the tree of documents\n" +
			"by kind and name, without any value of them. It plans nothing.",
		Example: "  machineadm resolve --path /etc/machineadm/node.yaml",
		RunE:    func(c *cobra.Command, _ []string) error { return g.resolve(c.Context(), s, o) },
	}
	o.bind(c, "prepare")
	return c
}

func (g *globals) resolve(ctx context.Context, s streams, o *applyFlags) error {
	return g.drive(ctx, s, o, run.ModePlan, choose(o, s.out, func(e run.Event) {
		if e.Type != run.EventRunFinished {
			return
		}
		for _, d := range e.Report.Documents {
			indent := strings.Repeat("  ", strings.Count(d.ID, "."))
			line := fmt.Sprintf("%s%s %s/%s", indent, d.ID, d.Kind, words.Escape(d.Name))
			if d.Provider != "" {
				line += " by " + words.Escape(d.Provider)
			}
			if d.Outcome != "" && d.Outcome != report.Skipped {
				line += ": " + reporting.DocumentWord(&d)
			}
			for _, warning := range d.Warnings {
				line += "\n" + indent + "  warning: " + words.Escape(warning)
			}
			_, _ = fmt.Fprintln(s.out, line) // the exit code reports success too
		}
		reporting.Errors(s.err, e.Report, s.width)
	}))
}
