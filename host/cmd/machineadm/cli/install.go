package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/host/session"
	"github.com/machineadm/machineadm/installer/install"
)

// releaseFlags are the flags of install and mirror.
type releaseFlags struct {
	install.Options
	keys   []string
	output string
}

func (f *releaseFlags) bind(c *cobra.Command, from string) {
	location := "`LOCATION` of the release: URL or path of its manifest.json; may be repeated, for mirrors that are tried in turn"
	if at := install.DefaultLocation(); at != "" {
		location += " (default: " + at + ")"
	}
	c.Flags().StringArrayVar(&f.Locations, from, nil, location)
	c.Flags().StringArrayVar(&f.keys, "key", nil, "minisign public `KEY` to trust, or its file; may be repeated, and one signature is enough (default: "+install.TrustedKeys()+"/*.pub)")
	bindOutput(c, &f.output)
}

func newInstall(g *globals, s streams) *cobra.Command {
	f := &releaseFlags{}
	c := &cobra.Command{
		Use: "install [--manifest LOCATION] [--key KEY]", Short: "Install a signed release of machineadm and its plugins", Args: noArguments,
		Long: "install downloads a release, verifies its signature and its files, and switches to it in one step. A failure changes\n" +
			"nothing. It can be repeated, and does nothing if the release is installed and complete. It works on Linux; on Windows\n" +
			"install the MSI.",
		Example: "  machineadm install --manifest https://example.com/releases/v1.0.0/manifest.json --key /run/machineadm/release.pub",
		RunE: func(c *cobra.Command, _ []string) error {
			return release(g, c, s, f, "manifest", g.install(s), func(r install.Result) string {
				done := " is already installed in "
				if r.Changed {
					done = " is installed in "
				}
				return "machineadm " + r.Version + done + r.Directory + " with " + words.Counted(len(r.Plugins), "plugin")
			})
		},
	}
	f.bind(c, "manifest")
	c.Flags().StringVar(&f.To, "to", install.DefaultDirectory, "directory `DIR` of the releases, and of bin/ and plugins/")
	c.Flags().StringSliceVar(&f.With, "with", nil, "install only these plugins, `NAME,...` such as node,remote-configuration-provider-s3 (default: node, all that prepare a node)")
	c.Flags().StringVar(&f.Version, "version", "", "refuse a release of another `VERSION`")
	c.Flags().StringVar(&f.AllowDowngrade, "allow-downgrade", "", "accept the release `VERSION` although a newer one was installed")
	_ = c.MarkFlagDirname("to") // the flag exists
	return c
}

// install waits for no run: one that is active would start its next plugin from the new release. It is refused before the
// download, and kept out during the switch alone, because a download can be tried again for an hour.
func (g *globals) install(s streams) func(context.Context, install.Options) (install.Result, error) {
	return func(ctx context.Context, o install.Options) (install.Result, error) {
		if !isDefault(o.To) { // the only one where a run searches for plugins by itself
			return install.Install(ctx, o)
		}
		options, err := g.session(s)
		if err != nil {
			return install.Result{}, err
		}
		o.Switch = func(do func() error) error { return withoutRun(options, do) }
		if err := o.Switch(func() error { return nil }); err != nil {
			return install.Result{}, err
		}
		return install.Install(ctx, o)
	}
}

// withoutRun calls do while no run is active, and none can start.
func withoutRun(o session.Options, do func() error) error {
	err := session.WithoutRun(o, do)
	if failed, ok := errors.AsType[*report.Error](err); ok {
		return &install.Error{Code: report.ExitCode(failed.Code), Problem: failed.Message, Remedy: failed.Hint}
	}
	return err
}

// isDefault reports whether a directory is the default one, also if its path differs or leads through links.
func isDefault(dir string) bool {
	path, err := filepath.Abs(dir)
	return err == nil && withoutLinks(path) == withoutLinks(install.DefaultDirectory)
}

// withoutLinks resolves the links of a path as far as it exists.
func withoutLinks(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return resolved
	}
	return filepath.Join(withoutLinks(filepath.Dir(path)), filepath.Base(path))
}

func newMirror(g *globals, s streams) *cobra.Command {
	f := &releaseFlags{}
	c := &cobra.Command{
		Use: "mirror --from LOCATION --to DIR", Short: "Verify a signed release and copy it for other machines", Args: noArguments,
		Long: "mirror copies all files of a release into a directory, which any web server can serve, after it has verified each of them.\n" +
			"It can be repeated, and copies only what is missing.",
		Example: "  machineadm mirror --from https://example.com/releases/v1.0.0 --to /srv/machineadm/v1.0.0 --key release.pub",
		RunE: func(c *cobra.Command, _ []string) error {
			if f.To == "" {
				return usage("--to is missing: the directory to copy the release to")
			}
			return release(g, c, s, f, "from", install.Mirror, func(r install.Copied) string {
				return fmt.Sprintf("%s has the release %s: %s, %d of them new", r.Directory, r.Version, words.Counted(r.Files, "file"), r.Copied)
			})
		},
	}
	f.bind(c, "from")
	c.Flags().StringVar(&f.To, "to", "", "directory `DIR` for the files")
	_ = c.MarkFlagDirname("to") // the flag exists
	return c
}

// release runs install or mirror, and shows the result.
func release[R any](
	g *globals, c *cobra.Command, s streams, f *releaseFlags, from string,
	do func(context.Context, install.Options) (R, error), text func(R) string,
) error {
	if err := checkOutput(f.output); err != nil {
		return err
	}
	for name, values := range map[string][]string{from: f.Locations, "key": f.keys, "with": f.With} {
		if slices.Contains(values, "") || c.Flags().Changed(name) && len(values) == 0 { // an unset shell variable
			return usage("--" + name + " has an empty value")
		}
	}
	log, err := g.logger(s.err)
	if err != nil {
		return err
	}
	ctx := c.Context()
	if at := install.DefaultLocation(); len(f.Locations) == 0 && at != "" {
		f.Locations = []string{at}
	}
	if len(f.Locations) == 0 {
		return usage("--" + from + " is missing: this build of machineadm has no default location of releases")
	}
	if f.Keys, err = install.Keys(f.keys, install.TrustedKeys()); err != nil {
		return releaseExit(err)
	}
	f.Warn = func(message string) { log.LogAttrs(ctx, slog.LevelWarn, message) }
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	result, err := do(ctx, f.Options)
	if err != nil {
		return releaseExit(err)
	}
	if f.output == "json" {
		return reporting.WriteJSON(s.out, result)
	}
	_, err = fmt.Fprintln(s.out, words.Escape(text(result)))
	return err
}

func releaseExit(err error) error {
	if failed, ok := errors.AsType[*install.Error](err); ok {
		return &exitError{code: failed.Code, message: failed.Problem, hint: failed.Remedy}
	}
	return err
}
