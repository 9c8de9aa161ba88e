package cli

import (
	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/session"
)

// applyFlags are the flags of the commands that read a stream.
type applyFlags struct {
	path, root, phase, output    string
	dryRun, reboot, allowSecrets bool
	resume, resolveOnly          bool
}

func (o *applyFlags) bind(c *cobra.Command, verb string) {
	c.Flags().StringVarP(&o.path, "path", "f", "", "the stream's `FILE`, or - for standard input")
	bindOutput(c, &o.output)
	bindRoot(c, &o.root, verb)
}

// bindRoot adds the flag that takes an image in the place of the live machine.
func bindRoot(c *cobra.Command, root *string, verb string) {
	c.Flags().StringVar(root, "root", "", "`DIR` of an image to "+verb+" instead of the live machine")
	_ = c.MarkFlagDirname("root") // the flag exists
}

func (o *applyFlags) bindPhase(c *cobra.Command, verb string) {
	c.Flags().StringVar(&o.phase, "phase", "all", "`PHASE` to "+verb+": preparation, provisioning, all")
	complete(c, "phase", "preparation", "provisioning", "all")
}

// check checks the flags before any input is read.
func (o *applyFlags) check() error {
	if err := checkOutput(o.output); err != nil {
		return err
	}
	if err := o.checkResume(); err != nil {
		return err
	}
	switch {
	case o.path == "" && !o.resume:
		return usage("--path is required: the stream's file, or - for standard input")
	case o.dryRun && o.reboot:
		return usage("--dry-run and --reboot exclude each other: a dry run never reboots")
	case o.root != "" && o.reboot:
		return usage("--reboot and --root exclude each other: an image does not reboot")
	case o.root == "" && o.allowSecrets:
		return usage("--allow-secrets requires --root")
	}
	_, err := session.PhaseOf(o.phase)
	return err
}

// checkResume refuses flags whose values are saved with the stream.
func (o *applyFlags) checkResume() error {
	switch {
	case !o.resume:
		return nil
	case o.path != "":
		return usage("--resume and --path exclude each other: the stream was saved before the reboot")
	case o.root != "":
		return usage("--resume and --root exclude each other: only a run on the live machine can be resumed")
	case o.dryRun:
		return usage("--resume and --dry-run exclude each other")
	case o.phase != "all":
		return usage("--resume and --phase exclude each other: the phase was saved with the stream")
	}
	return nil
}
