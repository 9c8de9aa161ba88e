// Command machineadm prepares this machine to be a Kubernetes node, as a stream of documents describes it.
package main

import (
	"os"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
