// Command machineadm prepares this machine to be a Kubernetes node, as described by a stream of documents.
package main

import (
	"os"
	"runtime"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
)

func main() {
	// A run mostly waits for plugins, one document at a time: more threads cost 5 % more processor time and save none.
	runtime.GOMAXPROCS(1)
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
