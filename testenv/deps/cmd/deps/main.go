// Command deps installs the Debian packages that the tests of the named tiers need, or of all tiers. With -list it prints them
// and changes nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/machineadm/machineadm/testenv/deps"
)

func main() {
	list := flag.Bool("list", false, "print what the tests need, install nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *list, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "deps:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list bool, tiers []string) error {
	if !list {
		return deps.Install(ctx, os.Stderr, deps.Detect(), tiers...)
	}
	packages, err := deps.Packages(tiers...)
	if err != nil {
		return err
	}
	for _, p := range packages {
		fmt.Printf("%-24s %s\n", p.Name, p.Why)
	}
	return nil
}
