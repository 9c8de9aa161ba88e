package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/trust"
)

func usage(message string) error {
	return &exitError{code: report.ExitUsage, message: message, hint: "see machineadm --help"}
}

// flagError is what is wrong with a flag by its form.
func flagError(c *cobra.Command, err error) error {
	if c.HasParent() && strings.HasSuffix(err.Error(), "unknown flag: --bootstrap") {
		return usage("--bootstrap goes without a command: machineadm --bootstrap --path FILE is apply --reboot")
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		takes := map[string]string{"duration": "a duration, such as 90s or 30m", "bool": "true or false"}
		if form, ok := takes[wrong.GetFlag().Value.Type()]; ok {
			return usage(fmt.Sprintf("--%s takes %s, not %q", wrong.GetFlag().Name, form, wrong.GetValue()))
		}
	}
	return usage(err.Error())
}

// knownCommand refuses what is none.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // letters that differ
	message := fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
	if similar := c.SuggestionsFor(args[0]); len(similar) > 0 {
		message += "; is it " + strings.Join(similar, " or ") + "?"
	}
	return usage(message)
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s takes no argument, but %q is one", c.CommandPath(), args[0])
	if c.Flags().Lookup("path") != nil {
		message += "; the stream is named by --path"
	}
	return usage(message)
}

// check judges the flags that every command takes, and that no flag is given an empty value: that of a shell variable
// which was meant to be set. An empty --root would mean the live machine.
func (g *globals) check(given *pflag.FlagSet) error {
	empty := ""
	given.Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" {
			empty = f.Name
		}
	})
	if slices.Contains(g.pluginDirs, "") {
		empty = "plugin-dir"
	}
	switch {
	case empty != "":
		return usage("--" + empty + " is given without a value")
	case g.timeout <= 0:
		return usage("--timeout takes a duration above zero, such as 90s or 30m")
	}
	for _, dir := range g.pluginDirs { // else what is said to be missing is the plugin
		if info, err := os.Stat(dir); err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
			return &exitError{
				code: report.ExitUsage, message: "--plugin-dir " + strconv.Quote(dir) + " is not a directory",
				hint: "make it, or give the directory that holds the plugins",
			}
		}
	}
	_, err := g.logger(nil)
	return err
}

func checkOutput(output string) error {
	if output != "text" && output != "json" {
		return usage("--output takes text or json")
	}
	return nil
}

// check judges the flags, before anything is read.
func (o *applyFlags) check() (pluginv1.Phase, error) {
	if err := checkOutput(o.output); err != nil {
		return 0, err
	}
	if err := o.checkResume(); err != nil {
		return 0, err
	}
	switch {
	case o.path == "" && !o.resume:
		return 0, usage("--path is missing: it names the stream's file, or - for standard input")
	case o.dryRun && o.reboot:
		return 0, usage("--dry-run changes nothing, and so --reboot has nothing to reboot for: leave one out")
	case o.root != "" && o.reboot:
		return 0, usage("--reboot is for the live machine, and --root prepares an image: leave one out")
	case o.root == "" && o.allowSecrets:
		return 0, usage("--allow-secrets is for images: it goes with --root")
	}
	return phaseOf(o.phase)
}

// phaseOf is the phase that --phase names.
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

// absoluteRoot is the directory that --root names, without links; empty for the live machine. When root runs, other
// users must not be able to put another directory into its place: everything is written below this path.
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
	defer func() { _ = dir.Close() }() // only looked at
	info, err := dir.Stat()
	if err != nil {
		return "", rootError(path, err)
	}
	if !info.IsDir() {
		return "", usage("--root: " + path + " is not a directory")
	}
	// Also by another name: a bind mount of / is the live machine, too.
	live, err := os.Stat(filepath.VolumeName(path) + string(filepath.Separator))
	if err != nil {
		return "", rootError(path, err)
	}
	if os.SameFile(live, info) {
		return "", usage("--root: " + path + " is the live machine: leave --root out")
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
