package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/skeleton"
	"github.com/machineadm/machineadm/internal/version"
)

func newPluginsNew(s streams) *cobra.Command {
	o := skeleton.Options{Version: version.String()}
	dir := ""
	c := &cobra.Command{
		Use: "new KIND --provider NAME", Short: "Write the skeleton of a plugin in Go",
		Long: "new writes a Go module with a plugin for documents of KIND, and a conformance case that it passes.\n" +
			"For a kind of machineadm, such as Sysctl, the plugin is another provider; any other KIND is a new kind in your group.\n" +
			"An existing directory is not overwritten.",
		Example: "  machineadm plugins new LoginBanner --provider issue --group example.com/v1", Args: oneKind,
		ValidArgsFunction: completeKinds,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Kind = args[0]
			return pluginsNew(s, o, dir)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Provider, "provider", "", "`NAME` of the provider, part of the plugin's file name, such as file")
	f.StringVar(&o.APIVersion, "group", "", "`GROUP/VERSION` of a new kind, your domain and a version (default: "+skeleton.DefaultAPIVersion+")")
	f.StringVar(&dir, "dir", "", "new directory `DIR` for the module (default: the plugin's file name)")
	_ = c.MarkFlagDirname("dir") // the flag exists
	f.StringVar(&o.Module, "module", "", "`PATH` of the Go module (default: the group and the plugin's file name)")
	return c
}

func oneKind(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usage("KIND is missing: the kind of the documents, such as LoginBanner")
	case 1:
		return nil
	}
	return usage(fmt.Sprintf("plugins new takes one KIND, not %d", len(args)))
}

func pluginsNew(s streams, o skeleton.Options, dir string) error {
	if err := o.Check(); err != nil {
		return usage(err.Error())
	}
	if dir == "" {
		dir = o.Binary()
	}
	files, err := o.Files()
	if err != nil {
		return err
	}
	if err := skeleton.Write(dir, files); err != nil {
		if unusable, ok := errors.AsType[*skeleton.PathError](err); ok {
			return &report.Error{Code: report.CodeUsage, Message: unusable.Error(), Hint: "name another directory with --dir"}
		}
		return &exitError{code: report.ExitFailed, message: err.Error(), hint: "free space, or name another directory with --dir; nothing was left behind"}
	}
	for _, f := range files {
		if _, err := fmt.Fprintln(s.out, words.Escape(filepath.Join(dir, filepath.FromSlash(f.Name)))); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.out, "next steps: %s\n", words.Escape(filepath.Join(dir, "README.md")))
	return err
}
