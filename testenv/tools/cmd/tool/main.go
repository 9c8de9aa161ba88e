// Command tool prints the path of each named tool, one per line, and builds what the cache does not hold.
//
//	tool NAME...         such as buf or containerd-2.3/ctr
//	tool -tier TIER...   every tool of these tiers: system, cluster, lint
//	tool                 every tool but the ones of make campaign alone
//
// With the tier system it also installs the packages of npm that tests need.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"

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
	var tiers []string
	switch {
	case len(names) == 0:
		tiers = []string{"lint", "test", "controller", "system", "cluster", "vm"}
	case names[0] == "-tier":
		tiers = names[1:]
	}
	if slices.Contains(tiers, "system") {
		if err := tools.InstallNodeModules(ctx, os.Stderr, "."); err != nil {
			return err
		}
	}
	if tiers != nil {
		var err error
		if names, err = tools.OfTiers(".", tiers...); err != nil {
			return err
		}
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
