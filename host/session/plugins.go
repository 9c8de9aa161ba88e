package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/internal/trust"
)

// Plugin is an installed plugin, in the JSON output of plugins list and inspect.
type Plugin struct {
	Binary  string   `json:"binary"`
	Path    string   `json:"path"`
	Trusted bool     `json:"trusted"`
	Problem string   `json:"problem,omitempty"`
	Remedy  string   `json:"remedy,omitempty"`
	SHA256  string   `json:"sha256,omitempty"`
	Version string   `json:"version,omitempty"`
	Fitness string   `json:"fitness,omitempty"`
	Reason  string   `json:"reason,omitempty"`
	Kinds   []string `json:"kinds,omitempty"`
	Stderr  string   `json:"stderr,omitempty"` // of a failed start

	KindNames []string `json:"-"` // without versions and phases

	plugin catalog.Plugin
}

// Provider returns the name of the provider of a kind that the plugin is.
func (i Plugin) Provider(kind string) string {
	provider := strings.TrimPrefix(i.Binary, naming.Prefix(kind))
	for _, infix := range []string{"-plugin-", "-provider-"} { // for an unknown kind
		if _, after, found := strings.Cut(i.Binary, infix); found && provider == i.Binary {
			provider = after
		}
	}
	return provider
}

// Plugins are installed plugins, with what kept others from being found.
type Plugins struct {
	Found       []Plugin
	Problems    []*report.Error
	Directories []string // that were searched
}

// CheckNames refuses names that no plugin can have.
func CheckNames(names []string) error {
	for _, name := range names {
		if !naming.IsPlugin(runtime.GOOS, naming.File(runtime.GOOS, name)) {
			return usage(fmt.Sprintf("%q is not the name of a plugin, as machineadm plugins list shows them", name))
		}
	}
	return nil
}

// Inspect starts the named plugins, or all, and returns their descriptions for the live machine, or for the image root. An untrusted plugin is not started.
func Inspect(ctx context.Context, o Options, root string, names []string) (Plugins, error) {
	root, err := machine.AbsoluteRoot(root)
	if err != nil {
		return Plugins{}, err
	}
	s, err := open(ctx, o, root, run.ModePlan)
	if err != nil {
		return Plugins{}, err
	}
	defer s.Close()
	c, err := s.catalog()
	if err != nil {
		return Plugins{}, err
	}
	p := Plugins{Found: []Plugin{}, Directories: c.Directories()}
	p.find(c, names)
	return p, s.describe(ctx, p.Found)
}

// Binaries returns the file names of the installed plugins.
func Binaries(o Options) (names []string) {
	c, err := (&Session{o: o}).catalog()
	if err != nil {
		return nil
	}
	plugins, _ := c.List() // a completion cannot show errors
	for _, p := range plugins {
		names = append(names, p.Binary)
	}
	return names
}

// Beside returns the directory of this program, if it contains plugins.
func Beside() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	return catalog.Beside(program)
}

// find finds and checks the named plugins, or all.
func (p *Plugins) find(c *catalog.Catalog, names []string) {
	var plugins []catalog.Plugin
	var problems []error
	if len(names) == 0 {
		plugins, problems = c.List()
	}
	for _, name := range names {
		found, err := c.Find(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		plugins = append(plugins, found)
	}
	for _, found := range plugins {
		p.Found = append(p.Found, check(c, found))
	}
	for _, err := range problems {
		p.Problems = append(p.Problems, launch.Failure(err.Error(), err))
	}
}

func check(c *catalog.Catalog, p catalog.Plugin) Plugin {
	info := Plugin{Binary: p.Binary, Path: p.Path, plugin: p}
	file, err := c.Open(p)
	if err != nil {
		info.Problem = err.Error()
		var refused *trust.Error
		if errors.As(err, &refused) {
			info.Problem, info.Remedy = refused.Path+": "+refused.Problem, refused.Remedy
		}
		return info
	}
	defer func() { _ = file.Close() }() // opened for reading only
	info.Trusted = true
	if info.SHA256, err = catalog.Digest(file); err != nil {
		info.Problem = err.Error()
	}
	return info
}

// describe starts the trusted plugins concurrently.
func (s *Session) describe(ctx context.Context, found []Plugin) error {
	if len(found) == 0 {
		return nil
	}
	fleet, err := s.Fleet()
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	for n := range found {
		if found[n].Trusted {
			wait.Go(func() { found[n].describe(ctx, fleet) })
		}
	}
	wait.Wait()
	return nil
}

// describe starts a plugin and adds its description.
func (i *Plugin) describe(ctx context.Context, fleet *launch.Fleet) {
	started, err := fleet.Start(ctx, i.plugin)
	if err != nil {
		i.Problem = err.Error()
		var broken *launch.StartError
		if errors.As(err, &broken) {
			i.Stderr = broken.Stderr
		}
		return
	}
	d := started.Description
	i.Version, i.Fitness, i.Reason = d.Version, d.Fitness.String(), d.FitnessReason
	for _, k := range d.Kinds {
		i.KindNames = append(i.KindNames, k.Kind)
		i.Kinds = append(i.Kinds, fmt.Sprintf("%s of %s (%s)", k.Kind, k.APIVersion, k.Phase))
	}
}
