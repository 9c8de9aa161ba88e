package suite

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
)

// The limits of one package. go test counts them from the start of its process.
const (
	productTimeout = "-timeout=20m"
	testenvTimeout = "-timeout=30m"
)

// quick runs the chosen packages with few calls of go test, which compiles some while it runs others. Results of the product that are
// in go test's cache count; testenv's do not: they run programs that go test does not see.
func (r *runner) quick(ctx context.Context) error {
	var concurrent, product, programs []string
	var nested []Package
	ordered := slices.Clone(r.chosen)
	slices.SortStableFunc(ordered, func(a, b Package) int { return bothOrNeither(b.First, a.First) })
	for _, p := range ordered {
		switch {
		case p.Nested:
			nested = append(nested, p)
		case p.Testenv():
			programs = append(programs, p.Dir)
		case r.Race && p.Concurrent && !p.Kubernetes:
			concurrent = append(concurrent, p.Dir)
		default:
			product = append(product, p.Dir)
		}
	}
	run := func(c command) error {
		if len(c.dirs) > 0 && ctx.Err() == nil {
			return c.run(ctx, r.done)
		}
		return nil
	}
	race := r.command(concurrent, productTimeout)
	race.race = true
	// Tests wait for processes and disks, so more packages run at once than there are processors.
	err := errors.Join(run(race), run(r.command(product, productTimeout, "-p=3")))
	others := make(chan error, 1)
	go func() {
		var errs []error
		for _, p := range nested {
			module := r.command([]string{"..."}, productTimeout)
			module.root = filepath.Join(r.Root, p.Dir)
			errs = append(errs, run(module))
		}
		others <- errors.Join(errs...)
	}()
	return errors.Join(err, run(r.command(programs, testenvTimeout, "-count=1", "-p=3")), <-others)
}
