package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/session"
)

// statusFlags are the flags of status.
type statusFlags struct {
	output, timeline, run string
	list, details, utc    bool
}

func newStatus(g *globals, s streams) *cobra.Command {
	o := &statusFlags{}
	c := &cobra.Command{
		Use: "status", Short: "Show the result of the last run", Args: noArguments,
		Long: "status shows the result of the last run. The first line has the document, the phase, the cause, the remedy, and whether\n" +
			"running again is safe. Only root can read earlier runs, and what other programs have written.",
		Example: "  machineadm status\n  machineadm status --timeline\n  machineadm status --timeline=svg >run.svg\n" +
			"  machineadm status --list\n  machineadm status --run 0011223344556677 --details",
		RunE: func(*cobra.Command, []string) error { return g.status(s, o) },
	}
	bindOutput(c, &o.output)
	f := c.Flags()
	f.StringVar(&o.timeline, "timeline", "", "show when the run did what, with the boots before it, in the `FORMAT` text (without a value) or svg")
	f.Lookup("timeline").NoOptDefVal = "text"
	complete(c, "timeline", "text", "svg")
	f.BoolVar(&o.list, "list", false, "list the runs that are kept, the newest first")
	f.StringVar(&o.run, "run", "", "show the run with this `ID`, or the beginning of one, instead of the last one")
	f.BoolVar(&o.details, "details", false, "show what other programs have written, too")
	bindUTC(c, &o.utc)
	return c
}

func (o *statusFlags) check() error {
	switch {
	case o.timeline != "" && o.timeline != "text" && o.timeline != "svg":
		return usage("--timeline takes text or svg")
	case o.list && (o.run != "" || o.details || o.timeline != ""):
		return usage("--list takes no --run, --details or --timeline")
	case o.timeline != "" && (o.details || o.output == "json"):
		return usage("--timeline takes no --details and no --output json")
	case o.details && o.output == "json":
		return usage("--details takes no --output json")
	}
	return checkOutput(o.output)
}

func (g *globals) status(s streams, o *statusFlags) error {
	if err := o.check(); err != nil {
		return err
	}
	var reports reporting.Kept
	reports.StateDir, reports.RunDir = session.Directories(g.stateDir, g.runDir)
	if o.list {
		return listRuns(s, o.output, o.utc, reports)
	}
	last, path, err := reports.Find(o.run)
	if err != nil {
		return err
	}
	switch alive := reports.Alive(last); {
	case o.timeline != "":
		return showTimeline(s, o.timeline, o.utc, reports, last, alive)
	case o.output == "json":
		return reporting.WriteJSON(s.out, last)
	default:
		return g.showStatus(s, o, reports, last, path, alive)
	}
}

func (g *globals) showStatus(s streams, o *statusFlags, reports reporting.Kept, last report.Report, path string, alive bool) error {
	details, err := reports.Explain(&last)
	if o.details && err != nil {
		return err
	}
	last.StartedAt = last.StartedAt.In(zone(o.utc))
	color, end := coloring(s.out)
	defer end()
	if err := reporting.Status(s.out, last, alive, color, columns(s.out)); err != nil {
		return err
	}
	if o.details {
		if err := reporting.Details(s.out, last, details); err != nil {
			return err
		}
	}
	if last.Resume == report.ResumeByHand && o.run == "" {
		if _, err := fmt.Fprintln(s.out, session.ResumeHint(reports.StateDir, reports.RunDir, g.logFlags())); err != nil {
			return err
		}
	}
	if since, waits := reports.Unsent(); waits && o.run == "" {
		if _, err := fmt.Fprintf(s.out, "report waits to be sent since %s; to try at once: machineadm report send --now\n",
			since.In(zone(o.utc)).Format(words.TimeFormat)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.out, "report: %s\n", path)
	return err
}
