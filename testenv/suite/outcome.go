package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/require"
)

// took takes the end of a job: a part of a package that is done, a failure that is tried once more, or the result of the package.
func (s *schedule) took(ctx context.Context, e end) {
	dir, r := e.job.pkg.Dir, e.result
	state := s.state[dir]
	state.inputs = append(state.inputs, e.inputs...)
	state.tests += r.Tests
	state.took += r.Seconds
	if e.err != nil {
		r.OK, r.Output = false, r.Output+e.err.Error()+"\n"
	}
	switch {
	case ctx.Err() != nil && !r.OK:
		s.outOfTime(e.job, "ended before it was done")
	case !r.OK && e.ranOut():
		s.printf("%s\n", strings.TrimRight(r.Output, "\n")) // where it was, or hangs
		s.outOfTime(e.job, "ended before it was done")
	case !r.OK && s.CI && !e.job.again:
		s.printf("%s\n%s\tfails, and is tried once more, alone\n", strings.TrimRight(r.Output, "\n"), r.Package)
		state.passed = append(state.passed, exactly(r.Passed)...)
		s.queue = slices.Insert(s.queue, 0, job{pkg: e.job.pkg, core: e.job.core, again: true, first: r})
	case !r.OK:
		state.dirty = true
		s.failed(e.job, r)
	default:
		s.passed(e.job, r)
	}
}

func exactly(tests []string) []string {
	patterns := make([]string, 0, len(tests))
	for _, test := range tests {
		patterns = append(patterns, "^"+regexp.QuoteMeta(test)+"$")
	}
	return patterns
}

func (s *schedule) passed(j job, r Result) {
	state := s.state[j.pkg.Dir]
	if j.again {
		names := j.first.Failed
		if len(names) == 0 {
			names = []string{"the package as a whole"}
		}
		for _, name := range names {
			s.flaky = append(s.flaky, j.pkg.Dir+" "+name)
		}
		s.printf("FLAKY %s %s: the second try passed\n", j.pkg.Dir, strings.Join(names, " "))
		state.dirty = true // the next run tries it again
	}
	if j.core {
		state.passed = append(state.passed, j.pkg.Core...)
		s.printf("%s\tcore tests\n", r.Line)
		return
	}
	s.done(r)
	state.ended = true
	if s.isPart(r) {
		return
	}
	kept := record{At: time.Now(), Commit: commit(s.Root), Tests: state.tests, Seconds: state.took}
	slices.Sort(state.inputs)
	kept.Inputs = slices.Compact(state.inputs)
	missing := slices.ContainsFunc(kept.Inputs, func(input string) bool { return strings.HasPrefix(input, "missing ") })
	if !state.dirty && !missing {
		var err error
		if kept.Green, err = s.keys.key(j.pkg, kept.Inputs); err != nil {
			s.faults = append(s.faults, fmt.Sprintf("%s: %v", j.pkg.Dir, err))
		}
	}
	s.keep(j.pkg, kept)
}

// isPart reports whether flags or the target left out tests of a package, so that the result does not cover the package.
func (s *schedule) isPart(r Result) bool {
	for why := range r.Skipped {
		if strings.HasPrefix(why, "make test-") {
			return true
		}
	}
	return len(s.Flags) > 0 || s.Target == string(require.VM)
}

// failed ends a package. What else of it is queued does not run.
func (s *schedule) failed(j job, r Result) {
	s.done(r)
	s.drop(j.pkg)
	if len(s.Flags) > 0 {
		return
	}
	s.keep(j.pkg, record{At: time.Now(), Commit: commit(s.Root), Failed: true, Inputs: s.state[j.pkg.Dir].record.Inputs})
}

func (s *schedule) drop(p Package) {
	s.state[p.Dir].ended = true
	s.queue = slices.DeleteFunc(s.queue, func(j job) bool { return j.pkg.Dir == p.Dir })
}

// outOfTime counts a package that had no time. The fourth time in a row is a failure, and so is a second try without time.
func (s *schedule) outOfTime(j job, why string) {
	state := s.state[j.pkg.Dir]
	if state.ended {
		return
	}
	if j.again {
		s.failed(j, j.first)
		return
	}
	if j.core && why != "ended before it was done" {
		return // the whole of it is behind in the queue
	}
	s.drop(j.pkg)
	s.left--
	if s.interrupted() {
		return
	}
	kept := state.record
	kept.Late++
	line := fmt.Sprintf("%-28s no time     %s; %d in a row", j.pkg.Dir, why, kept.Late)
	s.notRun = append(s.notRun, line)
	if kept.Late > lateRuns {
		s.late = append(s.late, j.pkg.Dir)
	}
	s.keep(j.pkg, kept)
}

// close notes flaky tests, and says which were so before.
func (s *schedule) close() error {
	if !s.CI {
		return nil
	}
	again, err := s.store.flaky(time.Now(), s.flaky)
	for _, test := range again {
		s.faults = append(s.faults, fmt.Sprintf("%s was flaky twice in %d runs: cure it", test, flakyRuns))
	}
	if err != nil {
		s.faults = append(s.faults, fmt.Sprintf("flaky tests are not kept: %v", err))
	}
	return nil
}

// readPassed reads what earlier parts of the run wrote: the tests that passed, by package.
func readPassed(file string) (map[string][]string, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	passed := map[string][]string{}
	for line := range bytes.Lines(data) {
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		passed[r.Package] = append(passed[r.Package], exactly(r.Passed)...)
	}
	return passed, nil
}

// commit names the checkout for people.
func commit(root string) string {
	cmd := exec.Command("git", "describe", "--always", "--match", "", "--dirty") //nolint:noctx // it is short
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "an unknown commit"
	}
	return strings.TrimSpace(string(out))
}
