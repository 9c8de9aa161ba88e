// Command manager is the controller of machineadm: it runs in a management cluster of Cluster API, and makes the bootstrap data of
// machines from MachineBootstrapConfigs.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stderr))
}

func run(args []string, stderr io.Writer) int {
	// Most of the heap are the caches, which stay: the garbage of a burst is collected when it is a quarter of them, and not as much.
	debug.SetGCPercent(25)
	// A quarter of a small heap is so little that collecting would take a third of the processor time. This counts as heap, and takes no memory.
	reserve := make([]byte, 24<<20)
	defer runtime.KeepAlive(reserve)
	var o options
	set := o.flags()
	set.SetOutput(stderr)
	if err := set.Parse(args); err != nil {
		if err == pflag.ErrHelp { //nolint:errorlint // pflag returns it as it is
			return 0
		}
		_, _ = fmt.Fprintln(stderr, "manager:", err) // stderr is all there is
		return 2
	}
	log := logger(stderr, slog.Level(-o.verbosity))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	ctx := ctrl.LoggerInto(ctrl.SetupSignalHandler(), log)
	if err := start(ctx, &o); err != nil {
		log.Error(err, "the manager ends")
		return 1
	}
	return 0
}

// logger returns the logger of the manager and of its libraries. Ours give names of objects, and never the objects. controller-runtime gives
// a watch that it begins later with its functions, which are no JSON.
func logger(to io.Writer, level slog.Level) logr.Logger {
	return logr.FromSlogHandler(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if source, ok := a.Value.Any().(fmt.Stringer); ok && a.Key == "source" {
			a.Value = slog.StringValue(source.String())
		}
		return a
	}}))
}
