package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// slots is how many packages run at once: they wait for nodes and servers half of the time.
const slots = 3

// job is one process of go test in the slow tiers.
type job struct {
	pkg   Package
	core  bool // the core tests alone
	again bool // the second try
	first Result
}

// progress is what is known of a package in this run.
type progress struct {
	record record
	key    string
	passed []string // patterns of tests that need not run again
	tests  int
	took   float64
	inputs []string
	dirty  bool // a prerequisite was missing, or a part failed: no key is written
	ended  bool // the whole package has run
}

// slow runs the chosen packages one process each: their core tests first, then the packages in the order of schedule.order. A package whose content key is that of its last green run is passed over under CI.
func (r *runner) slow(ctx context.Context) error {
	s, err := r.newSchedule(ctx)
	if err != nil {
		return err
	}
	signal := ctx
	s.interrupted = func() bool { return signal.Err() != nil } // and not by the limit of time
	if r.End != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, r.Began.Add(r.End))
		defer cancel()
	}
	s.run(ctx)
	return s.close()
}

// schedule decides what runs next. One goroutine owns it.
type schedule struct {
	*runner
	store   store
	keys    *keys
	queue   []job
	state   map[string]*progress // by directory
	running int
	alone   bool
	// interrupted reports whether a signal ended the run.
	interrupted func() bool
}

func (r *runner) newSchedule(ctx context.Context) (*schedule, error) {
	s := &schedule{runner: r, state: map[string]*progress{}}
	var err error
	if s.store, err = openStore(); err != nil {
		return nil, err
	}
	if s.keys, err = newKeys(ctx, r.Root); err != nil {
		return nil, err
	}
	passed, err := readPassed(r.Passed)
	if err != nil {
		return nil, err
	}
	var whole []job
	for _, p := range r.chosen {
		state := &progress{record: s.store.record(p.Dir), passed: passed[p.Path()]}
		if state.key, err = s.keys.key(p, state.record.Inputs); err != nil {
			return nil, err
		}
		s.state[p.Dir] = state
		if r.CI && state.record.holds(state.key, time.Now()) {
			s.passOver(p, state)
			continue
		}
		if r.CI && len(p.Core) > 0 {
			s.queue = append(s.queue, job{pkg: p, core: true})
		}
		whole = append(whole, job{pkg: p})
	}
	slices.SortStableFunc(s.queue, func(a, b job) int { return bothOrNeither(a.pkg.Alone, b.pkg.Alone) })
	slices.SortStableFunc(whole, s.order)
	s.queue = append(s.queue, whole...)
	return s, nil
}

func bothOrNeither(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// order puts first what failed, then what earlier runs had no time for, so that a package that runs alone has its turn, too, then what
// runs beside others, then what takes longest or never ran: a long package that starts last would run with nothing beside it.
func (s *schedule) order(a, b job) int {
	x, y := s.state[a.pkg.Dir].record, s.state[b.pkg.Dir].record
	return cmp.Or(
		bothOrNeither(y.Failed, x.Failed),
		cmp.Compare(y.Late, x.Late),
		bothOrNeither(a.pkg.Alone, b.pkg.Alone),
		cmp.Compare(y.expected(), x.expected()),
	)
}

// passOver counts a package as unchanged.
func (s *schedule) passOver(p Package, state *progress) {
	s.notRun = append(s.notRun, fmt.Sprintf("%-28s unchanged   green at %s on %s (%d tests, %.0f s)", p.Dir, state.record.Commit,
		state.record.At.Format("2006-01-02"), state.record.Tests, state.record.Seconds))
	state.record.Passed++
	state.ended = true
	s.keep(p, state.record)
	s.left--
}

// keep writes a record. Without it the package runs again next time, so a failure is only said.
func (s *schedule) keep(p Package, r record) {
	if err := s.store.write(p.Dir, r); err != nil {
		s.faults = append(s.faults, fmt.Sprintf("the result of %s is not kept: %v", p.Dir, err))
	}
}

// end is what a job sends when its process is gone.
type end struct {
	job    job
	result Result
	inputs []string
	err    error
	cut    bool // the end of the run bounded its time
}

// ranOut reports whether the tests of a job were stopped because the run is at its end.
func (e end) ranOut() bool {
	return e.cut && strings.Contains(e.result.Output, "panic: test timed out after ")
}

func (s *schedule) run(ctx context.Context) {
	ends := make(chan end)
	for {
		for len(s.queue) > 0 && s.fits(s.queue[0]) && ctx.Err() == nil {
			next := s.queue[0]
			s.queue = s.queue[1:]
			if !s.inTime(next) {
				s.outOfTime(next, "no time to start it")
				continue
			}
			s.running++
			s.alone = next.pkg.Alone || next.again
			state := s.state[next.pkg.Dir]
			go func() { ends <- s.start(ctx, next, slices.Clone(state.passed)) }()
		}
		if s.running == 0 {
			break
		}
		e := <-ends
		s.running--
		s.alone = false
		s.took(ctx, e)
	}
	for len(s.queue) > 0 {
		left := s.queue[0]
		s.queue = s.queue[1:]
		s.outOfTime(left, "no time to start it")
	}
}

func (s *schedule) fits(j job) bool {
	if j.pkg.Alone || j.again {
		return s.running == 0
	}
	return s.running < slots && !s.alone
}

// inTime reports whether a job may start. A second try may start later than others if it fits: it decides whether the run is green.
func (s *schedule) inTime(j job) bool {
	if s.LastStart == 0 {
		return true
	}
	past := time.Since(s.Began)
	if j.again {
		return past+time.Duration(j.first.Seconds*float64(time.Second)) < s.End
	}
	return past < s.LastStart
}

// start runs one job. passed are patterns of tests that are left out.
func (s *schedule) start(ctx context.Context, j job, passed []string) (e end) {
	e.job = j
	scratch, err := os.MkdirTemp("", "machineadm-suite-")
	if err != nil {
		e.err = err
		return e
	}
	defer func() { e.err = errors.Join(e.err, os.RemoveAll(scratch)) }()
	record, log := filepath.Join(scratch, "record"), filepath.Join(scratch, "opened")
	if e.err = os.WriteFile(record, nil, 0o600); e.err != nil {
		return e
	}
	timeout := s.timeout()
	e.cut = timeout < longest
	c := s.command([]string{j.pkg.Dir}, append([]string{"-count=1", "-timeout=" + timeout.String()}, s.selection(j, passed)...)...)
	c.flags = append(c.flags, "-args", "-test.testlogfile="+log)
	c.env = append(c.env, "MACHINEADM_RECORD="+record)
	e.err = c.run(ctx, func(r Result) { e.result = r })
	recorded, err := os.ReadFile(record)
	e.err = errors.Join(e.err, err)
	for line := range strings.Lines(string(recorded)) {
		e.inputs = append(e.inputs, strings.TrimSpace(line))
	}
	if e.result.OK {
		files, err := opened(s.Root, j.pkg.Dir, log)
		e.err = errors.Join(e.err, err)
		e.inputs = append(e.inputs, files...)
	}
	return e
}

// selection are the flags for the tests of a job.
func (s *schedule) selection(j job, passed []string) []string {
	var flags []string
	switch {
	case j.core:
		flags = append(flags, "-run="+strings.Join(j.pkg.Core, "|"))
	case s.Target == "vm" && len(j.pkg.VM) > 0:
		flags = append(flags, "-run=^("+strings.Join(j.pkg.VM, "|")+")$")
	}
	if len(passed) > 0 && !j.core {
		flags = append(flags, "-skip="+strings.Join(passed, "|"))
	}
	return flags
}

// longest is how long a package may take.
const longest = 60 * time.Minute

// timeout lets a package that hangs show where, before it is ended.
func (s *schedule) timeout() time.Duration {
	if s.End == 0 {
		return longest
	}
	return min(longest, max(time.Until(s.Began.Add(s.End))-30*time.Second, time.Minute).Round(time.Second))
}
