// Command suite runs the tests of a target: `suite [FLAGS] TARGET [PACKAGE ...] [-- FLAGS OF GO TEST]`. See testenv/suite.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/testenv/suite"
	"github.com/machineadm/machineadm/testenv/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) (bool, error) {
	o := suite.Options{CI: os.Getenv("CI") == "true", Out: os.Stdout, Began: time.Now()}
	if at := slices.Index(arguments, "--"); at >= 0 {
		arguments, o.Flags = arguments[:at], arguments[at+1:]
	}
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	flags.BoolVar(&o.Race, "race", false, "use the race detector for packages of the product that start goroutines")
	flags.DurationVar(&o.LastStart, "last-start", 0, "start no package of the slow tiers after this time of the run; 0: no limit")
	flags.DurationVar(&o.End, "end", 0, "end the slow tiers after this time of the run; 0: no limit")
	flags.StringVar(&o.Passed, "passed", os.Getenv("MACHINEADM_PASSED"), "file with the tests that the fast tiers passed: they write it, the slow ones read it")
	began := flags.Int64("began", 0, "when the run began of which this is a part, in seconds since 1970; 0: now")
	if err := flags.Parse(arguments); err != nil {
		return false, err
	}
	if *began != 0 {
		o.Began = time.Unix(*began, 0)
	}
	if flags.NArg() == 0 || !slices.Contains(suite.Targets(), flags.Arg(0)) {
		return false, fmt.Errorf("name a target: %s", strings.Join(suite.Targets(), ", "))
	}
	o.Target, o.Dirs = flags.Arg(0), flags.Args()[1:]
	root, err := tools.Root(".")
	if err != nil {
		return false, err
	}
	o.Root = root
	return suite.Run(ctx, o)
}
