package sdk

import (
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/proctree"
)

// Served is a Plugin, a Source or a KeyProvider.
type Served interface {
	server(goos string) pluginv1.Describer
}

// Main serves the plugin to the host that started this process, until the host ends it. A plugin's main only calls Main. Go
// code runs on one thread at a time; a plugin with long computations sets runtime.GOMAXPROCS in Plan or Apply.
func Main(p Served) {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: hclogNames})))
	if err := proctree.DieWithParent(); err != nil {
		slog.Warn("this process may outlive its host", "error", err)
	}
	if err := proctree.NoCoreDumps(); err != nil { // a dump would hold the secrets of the document
		slog.Warn("core dumps stay enabled", "error", err)
	}
	// A service manager that stops the host signals every process of the unit, but the host ends the plugin, with Stop, so
	// that a change is finished. The signals are received and dropped: commands would inherit that they are ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGHUP)
	// A plugin handles one document at a time and mostly waits: with more threads, its start takes an eighth longer.
	runtime.GOMAXPROCS(1)
	launch.Serve(p.server(runtime.GOOS))
}

// hclogNames renames the keys of a record to those that a go-plugin host reads on a plugin's stderr.
func hclogNames(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "@timestamp"
	case slog.LevelKey:
		a.Key = "@level"
	case slog.MessageKey:
		a.Key = "@message"
	}
	return a
}
