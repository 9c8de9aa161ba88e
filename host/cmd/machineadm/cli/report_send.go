package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/session"
)

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
	o, err := g.session(s)
	if err != nil {
		return err
	}
	done, err := session.Send(ctx, o, now)
	if done == "" {
		return err
	}
	_, failed := fmt.Fprintln(s.out, done)
	return errors.Join(failed, err)
}
