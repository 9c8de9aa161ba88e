package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/outbox"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

// sendTime is the longest try of report send.
const sendTime = time.Minute

func newReport(g *globals, s streams) *cobra.Command {
	c := &cobra.Command{Use: "report", Short: "Send the report of the last run, or compare reports"}
	makeGroup(c)
	now := false
	send := &cobra.Command{
		Use: "send", Short: "Send the report that waits to be delivered", Args: noArguments,
		Long: "send delivers the report of the last run, if it waits and its next try is due. The exit code is 0 if it is delivered or\n" +
			"nothing waits, and 7 if it will be tried again. The operating system starts this command until then, for 24 hours.",
		RunE: func(c *cobra.Command, _ []string) error { return g.sendReport(c.Context(), s, now) },
	}
	send.Flags().BoolVar(&now, "now", false, "do not wait until the next try is due")
	c.AddCommand(send, newReportTimeline(s))
	return c
}

func (g *globals) sendReport(ctx context.Context, s streams, now bool) error {
	log, err := g.logger(s.err)
	if err != nil {
		return err
	}
	where, err := g.open(ctx, log, "", run.ModePlan)
	if err != nil {
		return err
	}
	defer where.close()
	box := state.OutboxIn(where.stateDir)
	o, err := where.waiting(ctx, box)
	if err != nil {
		return stateExit(err)
	}
	if o == nil {
		if err := g.stopReports(ctx, where, box); err != nil {
			return stateExit(err)
		}
		_, err = fmt.Fprintf(s.out, "no report waits in %s\n", where.stateDir)
		return err
	}
	if outbox.Expired(*o, clock()) {
		g.forgetReport(ctx, where, o.Sequence, s)
		return &exitError{code: report.ExitDeadline, message: "the report was not delivered within 24 hours and is dropped"}
	}
	if wait := outbox.Wait(*o, clock()); wait > 0 && !now {
		_, err := fmt.Fprintf(s.out, "the report is tried again in %s\n", wait.Round(time.Second))
		return errors.Join(err, &exitError{code: report.ExitDeadline})
	}
	g.useSearch(*o)
	return g.sendWaiting(ctx, where, box, *o, s)
}

// waiting returns the report in the outbox of this machine, nil for none. A clone never sends that of the machine that it was
// made from.
func (p *place) waiting(ctx context.Context, box state.Outbox) (*state.Outgoing, error) {
	id, err := p.machineID(ctx)
	if err != nil {
		return nil, err
	}
	o, err := box.Load()
	if id != "" && p.store == nil && err == nil {
		o = nil
	}
	return o, err
}

// sendWaiting tries once to deliver a report.
func (g *globals) sendWaiting(ctx context.Context, where *place, box state.Outbox, o state.Outgoing, s streams) error {
	try, cancel := context.WithTimeout(ctx, min(g.timeout, sendTime))
	defer cancel()
	err := g.send(try, where, nil, o)
	answer, after := outbox.Classify(o, err)
	switch answer {
	case outbox.Delivered:
		g.forgetReport(ctx, where, o.Sequence, s)
		_, err := fmt.Fprintln(s.out, "the report is delivered")
		return err
	case outbox.Refused, outbox.NotWanted:
		g.forgetReport(ctx, where, o.Sequence, s)
		e := pluginv1.AsError(err)
		return &exitError{code: report.ExitCode(e.Code.String()), message: "the report is dropped: " + e.Error(), hint: e.Hint}
	}
	message := "the report was not sent: " + sendError(err)
	o = outbox.Failed(o, clock(), time.Now().UTC(), after, rand.Float64())
	if err := box.Update(o); err != nil {
		return stateExit(err)
	}
	return &exitError{
		code: report.ExitDeadline, message: message,
		hint: fmt.Sprintf("it is tried again in %s, until 24 hours after the first try", o.Pause.Round(time.Second)),
	}
}

// useSearch searches for plugins as the run did whose report waits. The command line goes first.
func (g *globals) useSearch(o state.Outgoing) {
	if len(g.pluginDirs) == 0 {
		g.pluginDirs = o.PluginDirs
	}
	g.pluginsOnPath = g.pluginsOnPath || o.PluginPath != ""
	g.kept = &state.Pending{PluginPath: o.PluginPath, Proxies: o.Proxies}
}
