package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/session"
)

// sealFlags are the flags of seal.
type sealFlags struct {
	root, output string
	discard      bool
}

func newSeal(g *globals, s streams) *cobra.Command {
	o := &sealFlags{}
	c := &cobra.Command{
		Use: "seal", Short: "Remove the state of this machine before it becomes an image", Args: noArguments,
		Long: "seal removes what belongs to this machine alone, before it becomes an image: state, reports, a run that waits, caches.\n" +
			"The providers that were chosen move to the image, so that the first boot of a clone does not choose others. seal can be repeated.",
		Example: "  machineadm apply --path node.yaml --phase preparation && machineadm seal\n  machineadm seal --root /mnt/image",
		RunE:    func(c *cobra.Command, _ []string) error { return g.seal(c.Context(), s, o) },
	}
	bindOutput(c, &o.output)
	c.Flags().StringVar(&o.root, "root", "", "`DIR` of an image to seal instead of the live machine")
	_ = c.MarkFlagDirname("root") // the flag exists
	c.Flags().BoolVar(&o.discard, "discard-run", false, "discard a run that waits for a reboot or failed after it")
	return c
}

func (g *globals) seal(ctx context.Context, s streams, o *sealFlags) error {
	if err := checkOutput(o.output); err != nil {
		return err
	}
	options, err := g.session(s)
	if err != nil {
		return err
	}
	r, err := session.Seal(ctx, options, o.root, o.discard)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return reporting.WriteJSON(s.out, r)
	}
	return reporting.Sealed(s.out, r.Removed, len(r.Choices))
}
