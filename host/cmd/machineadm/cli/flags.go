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

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/trust"
)

func usage(message string) error {
	return &exitError{code: report.ExitUsage, message: message, usage: true}
}

// flagError returns the usage error for a syntax error of the flags.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(c, unknown.GetSpecifiedName(), unknown.GetSpecifiedShortnames())
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		takes := map[string]string{"duration": "a duration, such as 90s or 30m", "bool": "true or false"}
		if form, ok := takes[wrong.GetFlag().Value.Type()]; ok {
			return usage(fmt.Sprintf("--%s takes %s, not %q", wrong.GetFlag().Name, form, wrong.GetValue()))
		}
	}
	return usage(err.Error())
}

func unknownFlag(c *cobra.Command, name, shorthands string) error {
	if name == "bootstrap" {
		return usage("--bootstrap takes no command: machineadm --bootstrap --path FILE means apply --reboot")
	}
	if shorthands != "" {
		return usage(fmt.Sprintf("%s has no flag -%s", c.CommandPath(), name))
	}
	message := fmt.Sprintf("%s has no flag --%s", c.CommandPath(), name)
	for _, other := range c.Root().Commands() {
		if other.Flags().Lookup(name) != nil {
			return usage(message + "; " + other.CommandPath() + " has it")
		}
	}
	var known []string
	c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if near := document.Nearest(name, known); near != "" {
		message += "; did you mean --" + near + "?"
	}
	return usage(message)
}

// knownCommand refuses arguments, which are unknown commands.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2 // an edit distance
	message := fmt.Sprintf("%s has no command %q", c.CommandPath(), args[0])
	if similar := c.SuggestionsFor(args[0]); len(similar) > 0 {
		message += "; did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usage(message)
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s takes no arguments: %q", c.CommandPath(), args[0])
	if c.Flags().Lookup("path") != nil {
		message += "; give the stream with --path"
	}
	return usage(message)
}

// check checks the flags of every command, and that no flag has an empty value, which comes from an unset shell variable: an
// empty --root would mean the live machine.
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
		return usage("--" + empty + " has an empty value")
	case g.timeout <= 0:
		return usage("--timeout takes a duration above zero, such as 90s or 30m")
	}
	for _, dir := range g.pluginDirs { // otherwise the error would be a missing plugin
		if info, err := os.Stat(dir); err == nil && !info.IsDir() || errors.Is(err, fs.ErrNotExist) {
			return &exitError{
				code: report.ExitUsage, message: "--plugin-dir " + strconv.Quote(dir) + " is not a directory",
				hint: "create it, or give the directory that contains the plugins",
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
