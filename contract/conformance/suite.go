package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/answers"
	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/launch"
)

// Suite is a plugin and the cases to check it with.
type Suite struct {
	// Binary is the plugin.
	Binary string
	// Cases are the result of LoadCases.
	Cases []*Case
	// Root, if set, is a tree below every case's root/ and expect/, for example an image of the operating system. Each
	// check gets a copy.
	Root string
	// Only, if set, names the checks to run.
	Only []string
	// Setup, if set, starts the counterpart of a case of a source or a key provider, and returns the values of ${NAME} in its
	// config.yaml. ctx ends when the checks of the case have ended.
	Setup func(ctx context.Context, c Counterpart) (map[string]string, error)
	// StartTimeout limits the time from the start of the plugin to its handshake line; 0 means launch.DefaultTimeout. A start
	// that exceeds it is tried once more.
	StartTimeout time.Duration
	// Parallel is the number of cases to run at the same time; 0 means 1.
	Parallel int

	shared *rig.Shared
}

// Counterpart is what a vendor's own counterpart serves to the plugin of one case, see Suite.Setup.
type Counterpart struct {
	// Case is the name of the case.
	Case string
	// Dir has the files of served/, with the canary in place of ${canary}.
	Dir string
	// Canary is the random word of the case.
	Canary string
}

// Case is one case, as read by LoadCases.
type Case struct {
	// Name is the directory's name.
	Name string

	files *testcase.Case
}

// LoadCases reads every case in a directory, sorted by name. The error for an invalid case names the file.
func LoadCases(dir string) ([]*Case, error) {
	loaded, err := testcase.LoadAll(dir)
	if err != nil {
		return nil, err
	}
	var cases []*Case
	for _, c := range loaded {
		cases = append(cases, &Case{Name: c.Name, files: c})
	}
	return cases, nil
}

// Startable returns the reason why the plugin's file cannot be started at all, and how to fix it; nil if it can. It starts
// the file once, without the cookie of a host, and ends it at once.
func (s Suite) Startable() error { return process.Startable(s.Binary) }

// Run runs every check on every case and passes each result to report, in the order of the cases and of Checks whatever
// Parallel is, one call at a time. Its error is that of Startable, of ctx, or of the kit itself.
func (s Suite) Run(ctx context.Context, report func(Result)) error {
	if err := s.Startable(); err != nil {
		return err
	}
	s.shared = &rig.Shared{}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]chan Result, len(s.Cases))
	for i := range results {
		results[i] = make(chan Result, len(Checks())) // a case never waits for the report of another
	}
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, min(s.Parallel, len(s.Cases))) {
		workers.Go(func() {
			for i := range next {
				if err := s.runAll(ctx, i, results[i]); err != nil {
					cancel(err)
				}
				close(results[i])
			}
		})
	}
	go func() {
		defer close(next)
		for i := range s.Cases {
			next <- i
		}
	}()
	for _, of := range results {
		for r := range of {
			report(r)
		}
	}
	workers.Wait()
	return context.Cause(ctx)
}

// runAll runs every check on one case. Its error is nil if ctx has ended.
func (s Suite) runAll(ctx context.Context, index int, out chan<- Result) (err error) {
	if ctx.Err() != nil {
		return nil
	}
	r, err := s.newRunner(ctx, index)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.End()) }()
	for _, check := range s.checks(r.Case) {
		got, err := run(ctx, r, check)
		if err != nil {
			return err
		}
		out <- got
	}
	return nil
}

// newRunner prepares the case with this index. The caller ends it with end.
func (s Suite) newRunner(ctx context.Context, index int) (*rig.Runner, error) {
	r := &rig.Runner{
		Case: s.Cases[index].files, Canary: testcase.NewCanary(), ClaimKey: answers.NewClaimKey(), Representative: index == s.representative(),
		OfKind: index == s.firstOf(s.Cases[index].files.Header), Shared: s.shared, StartTimeout: cmp.Or(s.StartTimeout, launch.DefaultTimeout),
	}
	var err error
	if r.Binary, err = filepath.Abs(s.Binary); err != nil {
		return nil, err
	}
	if s.Root != "" {
		if r.Base, err = filepath.Abs(s.Root); err != nil {
			return nil, err
		}
	}
	// Not below the directory of a test: the path of a socket has room for about a hundred characters.
	if r.Dir, err = os.MkdirTemp("", "conformance-"); err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	r.Sockets = filepath.Join(r.Dir, "s")
	if err := os.Mkdir(r.Sockets, 0o700); err != nil {
		return nil, errors.Join(err, r.End())
	}
	if r.Case.Header.Role()&testcase.Remote != 0 {
		if r.Counterpart, err = rig.NewCounterpart(ctx, r.Case, filepath.Join(r.Dir, "served"), r.Canary, s.setup()); err != nil {
			return nil, errors.Join(err, r.End())
		}
	}
	if r.Document, err = r.Case.Document(r.Canary, r.Values()); err != nil {
		return nil, errors.Join(err, r.End())
	}
	return r, nil
}

// setup returns Setup for the rig; nil if it is not set.
func (s Suite) setup() func(ctx context.Context, name, dir, canary string) (map[string]string, error) {
	if s.Setup == nil {
		return nil
	}
	return func(ctx context.Context, name, dir, canary string) (map[string]string, error) {
		return s.Setup(ctx, Counterpart{Case: name, Dir: dir, Canary: canary})
	}
}

// checks returns those for the type of plugin that the case is for.
func (s Suite) checks(of *testcase.Case) []Check {
	return slices.DeleteFunc(Checks(), func(c Check) bool {
		return max(c.of, testcase.Configurator)&of.Header.Role() == 0 || s.Only != nil && !slices.Contains(s.Only, c.Name)
	})
}

// representative is the index of the case for the checks that depend on no case: the first that is applied, else the first.
func (s Suite) representative() int {
	return max(0, slices.IndexFunc(s.Cases, func(c *Case) bool { return !c.files.Refused() }))
}

// firstOf returns the index of the first case whose document has this kind and is applied, or -1.
func (s Suite) firstOf(kind testcase.Header) int {
	return slices.IndexFunc(s.Cases, func(c *Case) bool { return c.files.Header == kind && !c.files.Refused() })
}
