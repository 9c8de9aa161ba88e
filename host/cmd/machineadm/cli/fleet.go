package cli

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"time"

	contractlaunch "github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/internal/proctree"
)

// fleet returns the plugins of the catalog, started on demand.
func (g *globals) fleet(where *place, log *slog.Logger) (*launch.Fleet, error) {
	c, err := g.catalog()
	if err != nil {
		return nil, err
	}
	sockets, err := where.socketDir()
	if err != nil {
		return nil, err
	}
	tree, err := proctree.Contain()
	if err != nil {
		return nil, &exitError{code: report.ExitFailed, message: "contain the processes of plugins: " + err.Error()}
	}
	where.tree = tree
	o := launch.Options{
		Log: log, SocketDir: sockets, Environment: contractlaunch.Environment(runtime.GOOS, g.lookupEnv),
		Root: where.root, Target: where.target, Tree: tree, Digests: where.digests(log),
	}
	if where.lock != nil {
		o.Inherit = []*os.File{where.lock.File()}
	}
	return launch.NewFleet(c, o), nil
}

// endAll ends all plugins and their processes.
func endAll(fleet *launch.Fleet, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := fleet.KillAll(ctx); err != nil {
		log.Error("processes of a plugin cannot be ended", "error", err)
	}
}

// killTimeout bounds the wait for killed processes: one in uninterruptible sleep does not end.
const killTimeout = 30 * time.Second

// catalog returns the plugin directories of the flags and the platform.
func (g *globals) catalog() (*catalog.Catalog, error) {
	c, err := catalog.New(catalog.Options{
		First: g.pluginDirs, Beside: g.beside, Fixed: naming.SearchDirectories(runtime.GOOS),
		Path: g.searchPath(), PluginsOnPath: g.pluginsOnPath,
	})
	if err != nil {
		return nil, usage(err.Error())
	}
	return c, nil
}

// runsPlugins says whether plugins can run on this operating system. On any other, a stream can be validated in part.
func runsPlugins() bool { return slices.Contains(target.OperatingSystems(), runtime.GOOS) }
