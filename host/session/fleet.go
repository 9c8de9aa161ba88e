package session

import (
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	contractlaunch "github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/internal/proctree"
)

// Fleet returns the plugins of the catalog, started on demand. Close ends them.
func (s *Session) Fleet() (*launch.Fleet, error) {
	c, err := s.catalog()
	if err != nil {
		return nil, err
	}
	sockets, err := s.socketDir()
	if err != nil {
		return nil, err
	}
	tree, err := proctree.Contain()
	if err != nil {
		return nil, &report.Error{Code: pluginv1.CodeInternal.String(), Message: "contain the processes of plugins: " + err.Error()}
	}
	s.tree = tree
	o := launch.Options{
		Log: s.o.Log, SocketDir: sockets, Environment: contractlaunch.Environment(runtime.GOOS, s.lookupEnv),
		Root: s.root, Target: s.Target, Tree: tree, Digests: s.digests(),
	}
	if s.lock != nil {
		o.Inherit = []*os.File{s.lock.File()}
	}
	fleet := launch.NewFleet(c, o)
	s.cleanup = append(s.cleanup, func() { s.endAll(fleet) })
	return fleet, nil
}

// endAll ends all plugins and their processes.
func (s *Session) endAll(fleet *launch.Fleet) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := fleet.KillAll(ctx); err != nil {
		s.o.Log.Error("processes of a plugin cannot be ended", "error", err)
	}
}

// killTimeout bounds the wait for killed processes: one in uninterruptible sleep does not end.
const killTimeout = 30 * time.Second

// catalog returns the plugin directories of the flags and the platform.
func (s *Session) catalog() (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Options{
		First: s.o.PluginDirs, Beside: s.o.Beside, Fixed: naming.SearchDirectories(runtime.GOOS),
		Path: s.searchPath(), PluginsOnPath: s.o.PluginsOnPath,
	})
	if err != nil {
		return nil, usage(err.Error())
	}
	return c, nil
}

// RunsPlugins reports whether plugins can run on this operating system. On any other, a stream can be validated in part.
func RunsPlugins() bool { return slices.Contains(target.OperatingSystems(), runtime.GOOS) }
