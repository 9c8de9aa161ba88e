// Command machineadm-conformance checks a plugin binary against the contract (contract/SPEC.md).
//
//	machineadm-conformance --plugin BIN --cases DIR [--check NAME] [--case NAME] [-j N] [--root DIR] [-o text|junit|json]
//	machineadm-conformance init --plugin BIN --document FILE DIR
//
// It exits with 0 without a finding, 1 with a finding or an error of its own, and 2 for wrong arguments, invalid cases, or
// a plugin that cannot be started at all. SIGINT and SIGTERM end it and its plugins.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, problems io.Writer) int {
	var code int
	var err error
	if len(args) > 0 && args[0] == "init" {
		code, err = initCase(ctx, args[1:], out)
	} else {
		code, err = check(ctx, args, out)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPass
	case err != nil:
		fmt.Fprintln(problems, "machineadm-conformance:", err)
	}
	return code
}
