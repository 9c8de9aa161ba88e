package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/require"
)

// summarize prints what the run proved, what it did not run and the command for it, and what failed. It ends with the line
// `N passed, N failed, N skipped`.
func (r *runner) summarize(ctx context.Context, err error) (bool, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	err = errors.Join(err, r.keepPassed())
	passed, failed, skipped := 0, 0, 0
	reasons := map[string]int{}
	var broken []string
	for _, result := range r.results {
		for why, count := range result.Skipped {
			skipped += count
			reasons[why] += count
		}
		failed += len(result.Failed)
		passed += result.Tests - len(result.Failed)
		if !result.OK {
			broken = append(broken, result.Package+": "+orElse(strings.Join(leaves(result.Failed), ", "), "the package as a whole"))
		}
	}
	passed -= skipped
	fmt.Fprintf(r.Out, "\n== %s: %d tests of %d packages in %s\n", r.Target, passed, len(r.results), time.Since(r.began).Round(time.Second))
	r.list("Not run", slices.Concat(r.otherTiers(reasons), r.notRun))
	r.list("Skipped", counted(reasons))
	r.list("Flaky: the second try passed", r.flaky)
	r.list("No time for the fourth time in a row", r.late)
	r.list("Faults", r.faults)
	r.list("Failed", broken)
	if r.Target == fast {
		fmt.Fprintf(r.Out, "Every target: make help. All of them: make test-all\n")
	}
	fmt.Fprintf(r.Out, "%d passed, %d failed, %d skipped\n", passed, max(failed, len(broken)), skipped)
	ok := len(broken) == 0 && len(r.late) == 0 && err == nil && !r.fatal()
	if ctx.Err() != nil {
		return false, errors.Join(err, errors.New("interrupted"))
	}
	return ok, err
}

// fatal reports whether a fault is more than a result that cannot be kept.
func (r *runner) fatal() bool {
	return slices.ContainsFunc(r.faults, func(fault string) bool { return !strings.Contains(fault, "not kept") })
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// leaves leaves out a test that failed because a subtest did.
func leaves(tests []string) []string {
	return slices.DeleteFunc(slices.Clone(tests), func(test string) bool {
		return slices.ContainsFunc(tests, func(other string) bool { return strings.HasPrefix(other, test+"/") })
	})
}

func (r *runner) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(r.Out, "\n%s:\n", title)
	for _, line := range lines {
		fmt.Fprintf(r.Out, "  %s\n", line)
	}
	fmt.Fprintln(r.Out)
}

// otherTiers says which targets run what this one did not, and takes their lines out of the reasons.
func (r *runner) otherTiers(reasons map[string]int) []string {
	var lines []string
	for _, tier := range []require.TierName{require.Controller, require.System, require.Cluster, require.VM} {
		if slices.Contains(r.tiers(), tier) {
			continue
		}
		target := "make test-" + string(tier)
		tests, packages := reasons[target+" runs it"], 0
		delete(reasons, target+" runs it")
		for _, p := range r.all {
			if p.in(tier) && !slices.ContainsFunc(r.chosen, func(c Package) bool { return c.Dir == p.Dir }) {
				packages++
			}
		}
		if r.Target == fast || tests > 0 {
			lines = append(lines, fmt.Sprintf("%-22s %s: %d tests, and %d packages that were not compiled", target, takes(tier), tests, packages))
		}
	}
	return lines
}

// takes says what a tier takes.
func takes(tier require.TierName) string {
	return map[require.TierName]string{
		require.Controller: "the controller, with the libraries of Kubernetes",
		require.System:     "booted nodes and real daemons (root on Debian)",
		require.Cluster:    "Kubernetes and Cluster API (root on Debian)",
		require.VM:         "emulated machines (root on Debian)",
	}[tier]
}

func counted(reasons map[string]int) []string {
	var lines []string
	for _, why := range slices.Sorted(maps.Keys(reasons)) {
		lines = append(lines, fmt.Sprintf("%4d  %s", reasons[why], why))
	}
	return lines
}

// keepPassed adds what passed to a file, for the next part of the run.
func (r *runner) keepPassed() error {
	if r.Passed == "" || r.Target != fast && r.Target != string(require.Controller) {
		return nil
	}
	var lines bytes.Buffer
	for _, result := range r.results {
		data, err := json.Marshal(Result{Package: result.Package, Passed: result.Passed})
		if err != nil {
			return err
		}
		lines.Write(append(data, '\n'))
	}
	file, err := os.OpenFile(r.Passed, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(lines.Bytes())
	return errors.Join(err, file.Close())
}
