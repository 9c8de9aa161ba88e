package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// record is what the cache keeps of a package of the slow tiers.
type record struct {
	Green   string    `json:"green,omitempty"`  // content key of the last whole green run, empty when it was not green
	Inputs  []string  `json:"inputs,omitempty"` // of that run, as internal/require records them, and `file PATH`
	At      time.Time `json:"at"`               // of the last run
	Commit  string    `json:"commit,omitempty"`
	Tests   int       `json:"tests,omitempty"`
	Seconds float64   `json:"seconds,omitempty"`
	Failed  bool      `json:"failed,omitempty"`
	Passed  int       `json:"passedOver,omitempty"` // runs in a row that did not run it because its key was the same
	Late    int       `json:"late,omitempty"`       // runs in a row that had no time for it
}

// A green result counts for as long and as many runs.
const (
	greenFor  = 7 * 24 * time.Hour
	greenRuns = 3
	lateRuns  = 3
)

// holds reports whether the last result can stand in for a run.
func (r record) holds(key string, now time.Time) bool {
	return r.Green != "" && r.Green == key && r.Passed < greenRuns && now.Sub(r.At) < greenFor && !now.Before(r.At)
}

// expected is how long the package takes, in seconds.
func (r record) expected() float64 {
	if r.At.IsZero() {
		return math.Inf(1)
	}
	return r.Seconds
}

// store is a directory of the cache with a file for each package, and one for the last runs. What cannot be read counts as absent.
type store struct{ dir string }

func openStore() (store, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return store{}, fmt.Errorf("find the cache directory (set HOME): %w", err)
	}
	return store{filepath.Join(caches, "machineadm-testenv", "results")}, nil
}

func (s store) path(name string) string {
	return filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-")+".json")
}

func (s store) read(name string, into any) {
	data, err := os.ReadFile(s.path(name))
	if err == nil {
		_ = json.Unmarshal(data, into) // a file that another release wrote, or a full disk cut, is as none
	}
}

func (s store) write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(s.path(name), data, atomicfile.Options{Mode: 0o644})
}

func (s store) record(dir string) (r record) {
	s.read(dir, &r)
	return r
}

// runsName is the file of the last runs under CI=true.
const runsName = "runs"

// pastRun is one run, with the tests that passed only when they ran again.
type pastRun struct {
	At    time.Time `json:"at"`
	Flaky []string  `json:"flaky,omitempty"`
}

// flakyRuns is over how many runs a test may be flaky once.
const flakyRuns = 5

// flaky adds this run, and returns the tests that were flaky in it and in one of the four before.
func (s store) flaky(now time.Time, tests []string) (again []string, err error) {
	var runs []pastRun
	s.read(runsName, &runs)
	runs = runs[max(0, len(runs)-(flakyRuns-1)):]
	for _, run := range runs {
		for _, test := range run.Flaky {
			if slices.Contains(tests, test) && !slices.Contains(again, test) {
				again = append(again, test)
			}
		}
	}
	return again, errors.Join(s.write(runsName, append(runs, pastRun{now, tests})))
}
