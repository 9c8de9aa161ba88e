// Command machineadm prepares this machine to be a Kubernetes node, as described by a stream of documents.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
	"github.com/machineadm/machineadm/internal/proctree"
)

func main() {
	if err := proctree.NoCoreDumps(); err != nil { // a dump would contain the secrets of the stream
		_, _ = fmt.Fprintln(os.Stderr, "warning: core dumps cannot be disabled:", err) // standard error is the last resort
	}
	// A run mostly waits for plugins, one document at a time: more threads cost 5 % more processor time and save none.
	runtime.GOMAXPROCS(1)
	// A stream of 16 MiB is in memory three times. Collecting earlier saves a tenth of it, and costs nothing with a small one.
	debug.SetGCPercent(50)
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
