package cli

import (
	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/timeline"
)

func newReportTimeline(s streams) *cobra.Command {
	format, utc := "text", false
	c := &cobra.Command{
		Use: "timeline FILE...", Short: "Show the reports of several machines on one time axis",
		Long: "timeline shows report.json files of one or several machines on one time axis, with a row for each machine: its boots, the\n" +
			"stages and documents of its runs, and the first line of its status.",
		Example: "  machineadm report timeline nodes/*.json\n  machineadm report timeline --format svg nodes/*.json >nodes.svg",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("machineadm report timeline takes the files of reports")
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, files []string) error {
			if format != "text" && format != "svg" {
				return usage("--format takes text or svg")
			}
			var all []report.Report
			for _, file := range files {
				r, err := reporting.Read(file)
				if err != nil {
					return err
				}
				all = append(all, r)
			}
			return writeTimeline(s, timeline.Several(all), format, utc)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "`FORMAT` of the picture: text, svg")
	complete(c, "format", "text", "svg")
	bindUTC(c, &utc)
	return c
}
