package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/session"
)

// cleanFlags are the flags of clean.
type cleanFlags struct {
	root, output string
	discard      bool
}

func newClean(g *globals, s streams) *cobra.Command {
	o := &cleanFlags{}
	c := &cobra.Command{
		Use: "clean", Short: "Remove the state of this machine before it becomes an image", Args: noArguments,
		Long: "clean removes what belongs to this machine alone, before it becomes an image: state, reports, a run that waits, caches.\n" +
			"The providers that were chosen move to the image, so that the first boot of a clone does not choose others. clean can be repeated.",
		Example: "  machineadm apply --path node.yaml --phase preparation && machineadm clean\n  machineadm clean --root /mnt/image",
		RunE:    func(c *cobra.Command, _ []string) error { return g.clean(c.Context(), s, o) },
	}
	bindOutput(c, &o.output)
	bindRoot(c, &o.root, "clean")
	c.Flags().BoolVar(&o.discard, "discard-run", false, "discard a run that waits for a reboot or failed after it")
	return c
}

// newSeal returns clean under its former name.
func newSeal(g *globals, s streams) *cobra.Command {
	c := newClean(g, s)
	c.Use, c.Hidden = "seal", true
	return c
}

func (g *globals) clean(ctx context.Context, s streams, o *cleanFlags) error {
	if err := checkOutput(o.output); err != nil {
		return err
	}
	options, err := g.session(s)
	if err != nil {
		return err
	}
	r, err := session.Clean(ctx, options, o.root, o.discard)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return reporting.WriteJSON(s.out, r)
	}
	return reporting.Cleaned(s.out, r.Removed, len(r.Choices))
}
