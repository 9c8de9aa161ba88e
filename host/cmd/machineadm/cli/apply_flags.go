package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/trust"
)

// applyFlags are the flags of the commands that read a stream.
type applyFlags struct {
	path, root, phase, output    string
	dryRun, reboot, allowSecrets bool
	resume, resolveOnly          bool
}

func (o *applyFlags) bind(c *cobra.Command, root bool) {
	c.Flags().StringVarP(&o.path, "path", "f", "", "the stream's `FILE`, or - for standard input")
	bindOutput(c, &o.output)
	if root {
		c.Flags().StringVar(&o.root, "root", "", "`DIR` of an image to prepare instead of the live machine")
		_ = c.MarkFlagDirname("root") // the flag exists
	}
}

func (o *applyFlags) bindPhase(c *cobra.Command, verb string) {
	c.Flags().StringVar(&o.phase, "phase", "all", "`PHASE` to "+verb+": preparation, provisioning, all")
	complete(c, "phase", "preparation", "provisioning", "all")
}

// check checks the flags before any input is read.
func (o *applyFlags) check() (pluginv1.Phase, error) {
	if err := checkOutput(o.output); err != nil {
		return 0, err
	}
	if err := o.checkResume(); err != nil {
		return 0, err
	}
	switch {
	case o.path == "" && !o.resume:
		return 0, usage("--path is required: the stream's file, or - for standard input")
	case o.dryRun && o.reboot:
		return 0, usage("--dry-run and --reboot exclude each other: a dry run never reboots")
	case o.root != "" && o.reboot:
		return 0, usage("--reboot and --root exclude each other: an image does not reboot")
	case o.root == "" && o.allowSecrets:
		return 0, usage("--allow-secrets requires --root")
	}
	return phaseOf(o.phase)
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

// phaseOf returns the phase of the flag --phase.
func phaseOf(name string) (pluginv1.Phase, error) {
	switch name {
	case "all":
		return pluginv1.PhaseUnspecified, nil
	case "preparation":
		return pluginv1.PhasePreparation, nil
	case "provisioning":
		return pluginv1.PhaseProvisioning, nil
	}
	return 0, usage("--phase takes preparation, provisioning or all")
}

// absoluteRoot returns the directory of --root without links; "" for the live machine. For root, other users must not be able
// to replace the directory, because every write goes below it.
func absoluteRoot(root string) (string, error) {
	if root == "" {
		return "", nil
	}
	path, err := filepath.Abs(root)
	if err == nil && privileged() {
		path, err = trust.Directory(path, false)
	} else if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err := untrusted("--root", err); err != nil {
		return "", err
	}
	if err != nil {
		return "", rootError(root, err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return "", rootError(path, err)
	}
	defer func() { _ = dir.Close() }() // opened for reading only
	info, err := dir.Stat()
	if err != nil {
		return "", rootError(path, err)
	}
	if !info.IsDir() {
		return "", usage("--root: " + path + " is not a directory")
	}
	// By identity, because a bind mount of / is the live machine too.
	live, err := os.Stat(filepath.VolumeName(path) + string(filepath.Separator))
	if err != nil {
		return "", rootError(path, err)
	}
	if os.SameFile(live, info) {
		return "", usage("--root: " + path + " is the live machine: omit --root")
	}
	return path, nil
}

func rootError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usage("--root: " + path + " does not exist")
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return usage("--root: " + path + " is not a directory")
	}
	return usage("--root: " + err.Error())
}
