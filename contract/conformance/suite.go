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

	shared *shared
}

// Startable returns the reason why the plugin's file cannot be started at all, and how to fix it; nil if it can. It starts
// the file once, without the cookie of a host, and ends it at once.
func (s Suite) Startable() error { return startable(s.Binary) }

// Run runs every check on every case and passes each result to report, in the order of the cases and of Checks whatever
// Parallel is, one call at a time. Its error is that of Startable, of ctx, or of the kit itself.
func (s Suite) Run(ctx context.Context, report func(Result)) error {
	if err := s.Startable(); err != nil {
		return err
	}
	s.shared = &shared{}
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
	defer func() { err = errors.Join(err, r.end()) }()
	for _, check := range s.checks(r.c) {
		got, err := r.run(ctx, check)
		if err != nil {
			return err
		}
		out <- got
	}
	return nil
}

// newRunner prepares the case with this index. The caller ends it with end.
func (s Suite) newRunner(ctx context.Context, index int) (*runner, error) {
	r := &runner{
		c: s.Cases[index], canary: newCanary(), claimKey: newClaimKey(), representative: index == s.representative(),
		ofKind: index == s.firstOf(s.Cases[index].header), shared: s.shared, startTimeout: cmp.Or(s.StartTimeout, launch.DefaultTimeout),
	}
	var err error
	if r.binary, err = filepath.Abs(s.Binary); err != nil {
		return nil, err
	}
	if s.Root != "" {
		if r.base, err = filepath.Abs(s.Root); err != nil {
			return nil, err
		}
	}
	// Not below the directory of a test: the path of a socket has room for about a hundred characters.
	if r.dir, err = os.MkdirTemp("", "conformance-"); err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	r.sockets = filepath.Join(r.dir, "s")
	if err := os.Mkdir(r.sockets, 0o700); err != nil {
		return nil, errors.Join(err, r.end())
	}
	if r.c.header.role()&remote != 0 {
		if r.counterpart, err = newCounterpart(ctx, r.c, filepath.Join(r.dir, "served"), r.canary, s.Setup); err != nil {
			return nil, errors.Join(err, r.end())
		}
	}
	if r.document, err = r.c.document(r.canary, r.values()); err != nil {
		return nil, errors.Join(err, r.end())
	}
	return r, nil
}

// checks returns those for the type of plugin that the case is for.
func (s Suite) checks(of *Case) []Check {
	return slices.DeleteFunc(Checks(), func(c Check) bool {
		return max(c.of, configurator)&of.header.role() == 0 || s.Only != nil && !slices.Contains(s.Only, c.Name)
	})
}

// representative is the index of the case for the checks that depend on no case: the first that is applied, else the first.
func (s Suite) representative() int {
	return max(0, slices.IndexFunc(s.Cases, func(c *Case) bool { return !c.refused() }))
}

// firstOf returns the index of the first case whose document has this kind and is applied, or -1.
func (s Suite) firstOf(kind header) int {
	return slices.IndexFunc(s.Cases, func(c *Case) bool { return c.header == kind && !c.refused() })
}
