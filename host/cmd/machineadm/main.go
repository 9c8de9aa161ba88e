// Command machineadm prepares this machine to be a Kubernetes node, as a stream of documents describes it.
package main

import (
	"os"
	"runtime"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
)

func main() {
	// It waits for plugins nearly all its life, and every document has its turn: with more threads of Go code at once, the
	// same work costs a twentieth more, and is not done sooner.
	runtime.GOMAXPROCS(1)
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
