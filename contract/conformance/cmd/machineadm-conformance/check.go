package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/internal/version"
)

// options are the arguments.
type options struct {
	plugin, cases, root, output string
	checks, names, values       list
	parallel                    int
	startTimeout                time.Duration
	listChecks, version         bool
}

// list is the value of a flag that can be repeated.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ", ") }

// Set implements flag.Value.
func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// check runs the checks and writes the results.
func check(ctx context.Context, args []string, out io.Writer) (int, error) {
	o, err := parse(args, out)
	if err != nil {
		return exitUsage, err
	}
	switch {
	case o.version:
		fmt.Fprintln(out, version.String())
		return exitPass, nil
	case o.listChecks:
		for _, c := range conformance.Checks() {
			fmt.Fprintf(out, "%-20s %s [SPEC %s]\n", c.Name, c.Says, c.Clause)
			if c.Fresh != "" {
				fmt.Fprintf(out, "%-20s starts processes of its own: %s\n", "", c.Fresh)
			}
		}
		return exitPass, nil
	}
	suite, err := o.suite()
	if err != nil {
		return exitUsage, err
	}
	report := reporter{plugin: o.plugin, out: out}
	if o.output == "text" {
		report.each = report.line
	}
	err = suite.Run(ctx, report.add)
	if err == nil {
		err = map[string]func() error{"text": report.summary, "junit": report.junit, "json": report.json}[o.output]()
	}
	if err != nil || report.count(conformance.Fail) > 0 {
		return exitFail, err
	}
	return exitPass, nil
}

const usage = `Check a plugin binary against the contract of machineadm, contract/SPEC.md.

  machineadm-conformance --plugin BIN --cases DIR [options]
  machineadm-conformance init --plugin BIN --document FILE DIR   (write a first case)

Options:
`

func parse(args []string, out io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("machineadm-conformance", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run reports the error
	flags.StringVar(&o.plugin, "plugin", "", "the plugin `binary` (required)")
	flags.StringVar(&o.cases, "cases", "", "the `directory` of cases (required)")
	flags.StringVar(&o.root, "root", "", "a `tree` below the root/ and expect/ of every case, such as an image of the operating system")
	flags.Var(&o.checks, "check", "run only the check with this `name`; can be repeated")
	flags.Var(&o.names, "case", "run only the case in the directory with this `name`; can be repeated")
	flags.Var(&o.values, "define", "the value of ${NAME} in config.yaml of a source or key provider, as `NAME=VALUE`; can be repeated")
	flags.DurationVar(&o.startTimeout, "start-timeout", launch.DefaultTimeout,
		"the `time` from a start of the plugin to its handshake line; a slower start is tried once more")
	flags.IntVar(&o.parallel, "j", runtime.NumCPU(), "the `number` of cases to run at the same time")
	flags.StringVar(&o.output, "o", "text", "the `format` of the results: text, junit or json")
	flags.BoolVar(&o.listChecks, "checks", false, "list the checks and exit")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		fmt.Fprint(out, "\n", conformance.CaseFormat)
		return o, err
	}
	switch {
	case err != nil:
		return o, fmt.Errorf("%w; --help lists the options", err)
	case o.version || o.listChecks:
		return o, nil
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: give --plugin BIN --cases DIR, or init as the first argument", flags.Arg(0))
	case o.plugin == "":
		return o, errors.New("--plugin is missing: the plugin binary")
	case o.cases == "":
		return o, errors.New("--cases is missing: the directory of cases (init writes a first one)")
	case o.output != "text" && o.output != "junit" && o.output != "json":
		return o, errors.New("-o must be text, junit or json")
	case o.startTimeout <= 0:
		return o, errors.New("--start-timeout must be above 0, such as 2m")
	case o.parallel < 1:
		return o, errors.New("-j must be at least 1")
	}
	return o, nil
}

// suite reads the cases and selects those that were named.
func (o options) suite() (conformance.Suite, error) {
	if err := isDirectory(o.root); err != nil {
		return conformance.Suite{}, fmt.Errorf("--root: %w", err)
	}
	var checks, known []string
	for _, c := range conformance.Checks() {
		checks = append(checks, c.Name)
	}
	values, err := o.defined()
	if err != nil {
		return conformance.Suite{}, err
	}
	suite := conformance.Suite{
		Binary: o.plugin, Root: o.root, Only: o.checks, Parallel: o.parallel, StartTimeout: o.startTimeout,
		Setup: func(context.Context, conformance.Counterpart) (map[string]string, error) { return values, nil },
	}
	if err := selected("--check", o.checks, checks); err != nil {
		return suite, err
	}
	cases, err := conformance.LoadCases(o.cases)
	if err != nil {
		return suite, err
	}
	for _, c := range cases {
		known = append(known, c.Name)
		if o.names == nil || slices.Contains(o.names, c.Name) {
			suite.Cases = append(suite.Cases, c)
		}
	}
	if err := selected("--case", o.names, known); err != nil {
		return suite, err
	}
	if err := suite.Startable(); err != nil {
		return suite, fmt.Errorf("--plugin: %w", err)
	}
	return suite, nil
}

// defined returns the values of --define.
func (o options) defined() (map[string]string, error) {
	values := map[string]string{}
	for _, one := range o.values {
		name, value, ok := strings.Cut(one, "=")
		if !ok || !regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(name) {
			return nil, errors.New("--define: give NAME=VALUE, with letters, digits, _ and - in the name") // the value can be a secret
		}
		values[name] = value
	}
	return values, nil
}
