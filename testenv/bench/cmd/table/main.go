// Command table copies the output of go test -bench and ends it with the table of docs/performance.md. It fails when
// go test failed, but not because of a time.
package main

import (
	"fmt"
	"os"

	"github.com/machineadm/machineadm/testenv/bench"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

func run() error {
	results, err := bench.ReadResults(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout)
	return bench.WriteTable(os.Stdout, bench.Rows(), results)
}
