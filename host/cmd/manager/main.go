// Command manager is the controller of machineadm: it runs in a management cluster of Cluster API, and makes the bootstrap data of
// machines from MachineBootstrapConfigs.
package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
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
	// Loggers of libraries log what they are given. Ours give names of objects, and never the objects.
	handler := slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-o.verbosity)})
	log := logr.FromSlogHandler(handler)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	ctx := ctrl.LoggerInto(ctrl.SetupSignalHandler(), log)
	if err := start(ctx, &o); err != nil {
		log.Error(err, "the manager ends")
		return 1
	}
	return 0
}
