// Command machineadm-conformance judges a plugin binary by the contract (contract/SPEC.md).
//
//	machineadm-conformance --plugin BIN --cases DIR [--root DIR] [-o text|junit|json]
//
// It exits with 0 when nothing failed, 1 when something did or could not be judged, and 2 for a wrong command line, cases
// that are not in order, or a plugin that cannot be started at all. Package conformance says what a case is. SIGINT and SIGTERM end it and its plugins.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/internal/version"
)

const (
	exitPass  = 0
	exitFail  = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options is the command line.
type options struct{ plugin, cases, root, output string }

func run(ctx context.Context, args []string, out, complaints io.Writer) int {
	o, code, ok := parse(args, out, complaints)
	if !ok {
		return code
	}
	suite, err := o.suite()
	if err != nil {
		fmt.Fprintln(complaints, "machineadm-conformance:", err)
		return exitUsage
	}
	report := reporter{plugin: o.plugin, out: out}
	if o.output == "text" {
		report.tell = report.line
	}
	err = suite.Judge(ctx, report.take)
	if err == nil {
		err = map[string]func() error{"text": report.summary, "junit": report.junit, "json": report.json}[o.output]()
	}
	switch {
	case err != nil:
		fmt.Fprintln(complaints, "machineadm-conformance:", err)
		return exitFail
	case report.count(conformance.Fail) > 0:
		return exitFail
	}
	return exitPass
}

func parse(args []string, out, complaints io.Writer) (o options, code int, ok bool) {
	flags := flag.NewFlagSet("machineadm-conformance", flag.ContinueOnError)
	flags.SetOutput(complaints)
	flags.StringVar(&o.plugin, "plugin", "", "the plugin `binary` (required)")
	flags.StringVar(&o.cases, "cases", "", "the `directory` of cases (required)")
	flags.StringVar(&o.root, "root", "", "a `tree` that every case is laid over, such as an image of the operating system")
	flags.StringVar(&o.output, "o", "text", "how to report: text, junit or json")
	checks := flags.Bool("checks", false, "list the checks and exit")
	printVersion := flags.Bool("version", false, "print the version and exit")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return o, exitPass, false
	case err != nil:
		return o, exitUsage, false
	case *printVersion:
		fmt.Fprintln(out, version.String())
		return o, exitPass, false
	case *checks:
		for _, c := range conformance.Checks() {
			fmt.Fprintf(out, "%-20s %s [SPEC %s]\n", c.Name, c.Says, c.Clause)
		}
		return o, exitPass, false
	}
	if err := o.check(flags.Args()); err != nil {
		fmt.Fprintln(complaints, "machineadm-conformance:", err)
		return o, exitUsage, false
	}
	return o, exitPass, true
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return errors.New("there are no arguments beside the options: give --plugin BIN --cases DIR")
	case o.plugin == "":
		return errors.New("--plugin is missing: the binary that is judged")
	case o.cases == "":
		return errors.New("--cases is missing: the directory of cases")
	case o.output != "text" && o.output != "junit" && o.output != "json":
		return errors.New("-o must be text, junit or json")
	}
	return nil
}

func (o options) suite() (conformance.Suite, error) {
	if o.root != "" {
		if info, err := os.Stat(o.root); err != nil {
			return conformance.Suite{}, fmt.Errorf("--root: %w", err)
		} else if !info.IsDir() {
			return conformance.Suite{}, fmt.Errorf("--root: %w", &fs.PathError{Op: "open", Path: o.root, Err: syscall.ENOTDIR})
		}
	}
	suite := conformance.Suite{Binary: o.plugin, Root: o.root}
	if err := suite.Startable(); err != nil {
		return suite, fmt.Errorf("--plugin: %w", err)
	}
	var err error
	suite.Cases, err = conformance.LoadCases(o.cases)
	return suite, err
}
