package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/skeleton"
	"github.com/machineadm/machineadm/internal/version"
)

func newPluginsNew(s streams) *cobra.Command {
	o := skeleton.Options{Version: version.String()}
	dir := ""
	c := &cobra.Command{
		Use: "new KIND --provider NAME", Short: "Write the beginnings of a plugin in Go",
		Long: "new writes a Go module with a plugin that serves documents of KIND, and a case for the conformance kit, which it passes.\n" +
			"A kind of machineadm's own, such as Sysctl, gives another provider of it; every other kind is a new one, in a group of yours.\n" +
			"Nothing that exists is written over.",
		Example: "  machineadm plugins new LoginBanner --provider issue --group example.com/v1", Args: oneKind,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Kind = args[0]
			return pluginsNew(s, o, dir)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Provider, "provider", "", "`NAME` of the provider, which the plugin's file carries, such as file")
	f.StringVar(&o.APIVersion, "group", "", "`GROUP/VERSION` of a new kind, in a domain of yours (default: "+skeleton.DefaultAPIVersion+")")
	f.StringVar(&dir, "dir", "", "new `DIR` for the module (default: the name of the plugin's file, here)")
	f.StringVar(&o.Module, "module", "", "`PATH` of the Go module (default: the group and the name of the plugin's file)")
	return c
}

func oneKind(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return newUsage("KIND is missing: it says what the documents are about, such as LoginBanner")
	case 1:
		return nil
	}
	return newUsage(fmt.Sprintf("plugins new takes one KIND, not %d", len(args)))
}

func newUsage(message string) error {
	return &exitError{code: report.ExitUsage, message: message, hint: "see machineadm plugins new --help"}
}

func pluginsNew(s streams, o skeleton.Options, dir string) error {
	if err := o.Check(); err != nil {
		return newUsage(err.Error())
	}
	if dir == "" {
		dir = o.Binary()
	}
	files, err := o.Files()
	if err != nil {
		return err
	}
	if err := skeleton.Write(dir, files); err != nil {
		if place, ok := errors.AsType[*skeleton.PlaceError](err); ok {
			return &exitError{code: report.ExitUsage, message: place.Error(), hint: "name another directory with --dir"}
		}
		return &exitError{code: report.ExitFailed, message: err.Error(), hint: "make room, or name another directory with --dir; nothing of it is left"}
	}
	for _, f := range files {
		if _, err := fmt.Fprintln(s.out, reporting.Escape(filepath.Join(dir, filepath.FromSlash(f.Name)))); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(s.out, "what to type next is in %s\n", reporting.Escape(filepath.Join(dir, "README.md")))
	return err
}
