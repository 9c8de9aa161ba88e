// Command host is the bare host: it starts the plugins that its arguments name, side by side, and has each plan, and if
// asked apply, one document.
//
//	host plan|apply DOCUMENT.json ROOT PLUGIN...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/machineadm/machineadm/testenv/bench/bare"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 4 {
		return errors.New("usage: host plan|apply DOCUMENT.json ROOT PLUGIN")
	}
	document, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	plugins := args[3:]
	failures := make([]error, len(plugins))
	var wait sync.WaitGroup
	for i, path := range plugins {
		wait.Go(func() { failures[i] = drive(ctx, path, document, args[2], args[0] == "apply") })
	}
	wait.Wait()
	return errors.Join(failures...)
}

func drive(ctx context.Context, path string, document []byte, root string, apply bool) error {
	h, err := bare.Start(ctx, path)
	if err != nil {
		return err
	}
	defer h.Kill()
	if err := h.Plan(ctx, document, root); err != nil || !apply {
		return err
	}
	return h.Apply(ctx, document, root)
}
