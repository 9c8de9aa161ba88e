// Command machineadm prepares this machine to be a Kubernetes node, as a stream of documents describes it.
package main

import (
	"os"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
	"github.com/machineadm/machineadm/internal/proctree"
)

func main() {
	proctree.MainIfGuard() // the same binary guards each plugin's tree of processes
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
