package sdk

import (
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/internal/proctree"
)

// Main serves the plugin to the host that started this process, and ends when the host says so. It is all that a
// plugin's main does. Go code runs on one thread at a time; a plugin that computes for long sets runtime.GOMAXPROCS in Plan
// or Apply.
func Main(p Plugin) {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: hclogNames})))
	if err := proctree.DieWithParent(); err != nil {
		slog.Warn("this process can outlive its host", "error", err)
	}
	if err := proctree.NoCoreDumps(); err != nil { // a dump would hold the secrets of the document
		slog.Warn("core dumps stay on", "error", err)
	}
	// Taken and dropped, not ignored, which commands would inherit: a service manager that stops the host signals every
	// process of the unit, and it is the host that asks for the end, with Stop, so that a change in hand is finished.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGHUP)
	// A plugin has one document in hand at a time, and waits for files and daemons: with more threads, its start costs an
	// eighth more.
	runtime.GOMAXPROCS(1)
	launch.Serve(NewConfigurator(p, runtime.GOOS))
}

// hclogNames gives records the names that a go-plugin host reads on a plugin's stderr.
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
