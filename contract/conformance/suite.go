package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
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
	// Parallel is the number of cases to run at the same time; 0 means 1.
	Parallel int

	machine *sync.RWMutex // see runner
}

// Run runs every check on every case and passes each result to report, in the order of the cases and of Checks whatever
// Parallel is, one call at a time. Its error is that of Startable, of ctx, or of the kit itself.
func (s Suite) Run(ctx context.Context, report func(Result)) error {
	if err := s.Startable(); err != nil {
		return err
	}
	s.machine = &sync.RWMutex{}
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
	r, err := s.newRunner(index)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()
	for _, check := range s.checks() {
		got, err := r.run(ctx, check)
		if err != nil {
			return err
		}
		out <- got
	}
	return nil
}

func (s Suite) checks() []Check {
	return slices.DeleteFunc(Checks(), func(c Check) bool { return s.Only != nil && !slices.Contains(s.Only, c.Name) })
}

// representative is the index of the case for the checks that depend on no case: the first that is applied, else the first.
func (s Suite) representative() int {
	return max(0, slices.IndexFunc(s.Cases, func(c *Case) bool { return !c.refused() }))
}
