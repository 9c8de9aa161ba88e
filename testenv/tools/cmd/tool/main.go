// Command tool prints the path of each named tool, one per line, and builds what the cache does not hold.
// Without a name it builds every tool there is.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/machineadm/machineadm/testenv/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tool:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	if len(names) == 0 {
		all, err := tools.Names(".")
		if err != nil {
			return err
		}
		names = all
	}
	for _, name := range names {
		path, err := tools.Path(ctx, os.Stderr, ".", name)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
