package main

//machineadm:first

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestEachDefectIsFound: each defect is found by its check, with a reason that says what it is, and in make campaign by no other check;
// the plugin without a defect passes every check of its type, each of which finds a defect of that type.
func TestEachDefectIsFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	built := build(t, dir, "broken", "testenv/broken")
	for _, d := range defects() {
		t.Run(d.binary(), func(t *testing.T) {
			t.Parallel()
			if d.mounts && exec.CommandContext(t.Context(), "unshare", "--mount", "true").Run() != nil {
				require.Missing(t, "needs a mount namespace, which this user cannot make")
			}
			binary := filepath.Join(dir, d.binary())
			if err := os.Link(built, binary); err != nil {
				t.Fatal(err)
			}
			cases, err := conformance.LoadCases(filepath.Join("testdata", cmp.Or(d.kind, "cases")))
			if err != nil {
				t.Fatal(err)
			}
			if d.machine {
				cases = slices.Concat(cases, machineCases(t))
			}
			reasons, checked, noNamespaces := map[string]string{}, map[string]bool{}, ""
			err = conformance.Suite{Binary: binary, Cases: cases, Only: d.checks()}.Run(t.Context(), func(r conformance.Result) {
				if r.Status == conformance.Fail {
					reasons[r.Check] += r.Case + ": " + r.Explain() + "\n"
					checkFinding(t, r)
				}
				if d.check == "" {
					checkStarts(t, r)
				}
				if r.Check == "live" && strings.Contains(r.Reason, "unshare(1)") {
					noNamespaces = r.Reason
				}
				checked[r.Check] = checked[r.Check] || r.Status != conformance.NotApplicable
			})
			if err != nil {
				t.Fatal(err)
			}
			if noNamespaces != "" {
				delete(checked, "live")
				if d.check == "live" {
					require.Missing(t, noNamespaces)
				}
			}
			if d.check == "" {
				delete(checked, "fields") // only for kinds of machineadm
				delete(checked, "kind")   // as above
				for check, applied := range checked {
					if !applied {
						t.Errorf("%s applies to no case", check)
					}
					if !slices.ContainsFunc(defects(), func(e defect) bool { return e.kind == d.kind && e.check == check }) {
						t.Errorf("no plugin of this type has a defect that %s finds", check)
					}
				}
			}
			for check, reason := range reasons {
				if check != d.check {
					t.Errorf("%s fails too:\n%s", check, reason)
				}
			}
			if got := reasons[d.check]; d.check != "" && !strings.Contains(got, d.says) {
				t.Errorf("%s does not say %q:\n%s", d.check, d.says, got)
			}
			t.Log(reasons[d.check])
		})
	}
}

// checks are all for the plugin without a defect, and in make campaign. A defect of answers alone cannot show in what disturbs an Apply.
func (d defect) checks() []string {
	switch {
	case d.check != "" && !require.Everything():
		return []string{d.check}
	case !d.answers:
		return nil
	}
	var out []string
	for _, check := range conformance.Checks() {
		if check.Name == "limit" { // the first that disturbs
			break
		}
		out = append(out, check.Name)
	}
	return out
}

// checkFinding requires all parts of a finding, and clauses of its check.
func checkFinding(t *testing.T, r conformance.Result) {
	t.Helper()
	if r.Clause == "" || r.Expected == "" || r.Reason == "" || r.Cause == "" {
		t.Errorf("%s: a part of the finding is missing: %+v", r.Check, r)
	}
	at := slices.IndexFunc(conformance.Checks(), func(c conformance.Check) bool { return c.Name == r.Check })
	all := strings.Split(conformance.Checks()[at].Clause, ", ")
	for clause := range strings.SplitSeq(r.Clause, ", ") {
		if !slices.Contains(all, clause) {
			t.Errorf("%s violates %s, which is none of its clauses %q", r.Check, clause, all)
		}
	}
}

// checkStarts requires that a check without a reason for a process of its own shares the processes of the case: it starts at most a
// second one, for what follows an interruption.
func checkStarts(t *testing.T, r conformance.Result) {
	t.Helper()
	for _, check := range conformance.Checks() {
		if check.Name == r.Check && check.Fresh == "" && r.Starts > 1 {
			t.Errorf("%s/%s starts %d processes", r.Case, r.Check, r.Starts)
		}
	}
}

// machineCases is a case whose file is also on this machine, at the same absolute path, below a directory of the test.
func machineCases(t *testing.T) []*conformance.Case {
	t.Helper()
	dir := t.TempDir()
	cases, machine := filepath.Join(dir, "cases"), filepath.Join(dir, machineName)
	document := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: machine}\nspec: {files: [{path: %q, content: \"new\\n\"}]}\n",
		apiVersion, kind, filepath.Join(machine, "settings"))
	for name, content := range map[string]string{
		filepath.Join(machine, "settings"):                             "old\n",
		filepath.Join(cases, "machine", "config.yaml"):                 document,
		filepath.Join(cases, "machine", "root", machine, "settings"):   "old\n",
		filepath.Join(cases, "machine", "expect", machine, "settings"): "new\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	loaded, err := conformance.LoadCases(cases)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// TestPlantedDefects: each of the 19 defects that a vendor planted in a plugin of its own, of which the kit once found nine, is the defect of a plugin here, and so
// TestEachDefectIsFound has the kit find it.
func TestPlantedDefects(t *testing.T) {
	t.Parallel()
	for planted, name := range map[string]string{
		"a file is written in place (G-11)":                   "in-place",
		"an unknown field of an item is ignored (G-2)":        "lenient-below",
		"a field of a pool is ignored (G-4)":                  "poll-blind",
		"an InvalidConfig quotes a value (G-3)":               "quoting",
		"a secret is logged (G-23)":                           "talkative",
		"Plan writes below /var/tmp (G-6, P-16)":              "caching",
		"absolute links leave the root (G-15)":                "trusting",
		"Stop does nothing (P-27)":                            "deaf",
		"the umask determines a mode (G-11)":                  "umasked",
		"digests are made otherwise (P-33)":                   "own-digest",
		"a link is made and not claimed (P-32)":               "unclaimed-link",
		"the temporary name is used without its lock (G-12)":  "unlocking",
		"the cookie is not looked at (H-4)":                   "cookieless",
		"the process stays after Shutdown (P-3)":              "lingering",
		"a status has no ErrorDetail (E-2)":                   "detailless",
		"Plan uses its state, not the machine (G-7)":          "believing",
		"that a restart is due is forgotten by a kill (G-22)": "forgetful-reload",
		"a command is run in an image (G-15)":                 "shell",
		"Apply registers in its handler (P-28)":               "late",
		"there is no health service (P-2)":                    "unhealthy",
		"a null is a value of another type (F-6)":             "null-averse",
		"an empty image is described as active (P-12)":        "at-home",
		"a state is claimed in another spelling (P-32)":       "affirmative",
	} {
		if !slices.ContainsFunc(defects(), func(d defect) bool { return d.name == name && d.check != "" }) {
			t.Errorf("no plugin has the defect that %s", planted)
		}
	}
}

// TestEveryCheckHasADefect, so that none is taken on trust; TestEachDefectIsFound requires it of each type.
func TestEveryCheckHasADefect(t *testing.T) {
	t.Parallel()
	known, without := map[string]bool{"": true}, map[string]bool{}
	for _, check := range conformance.Checks() {
		known[check.Name], without[check.Name] = true, true
	}
	for _, d := range defects() {
		if !known[d.check] {
			t.Errorf("%s: there is no check %s", d.name, d.check)
		}
		delete(without, d.check)
	}
	if len(without) > 0 {
		t.Errorf("checks without a defect: %q", slices.Sorted(maps.Keys(without)))
	}
}

// build builds a program and returns its path.
func build(t *testing.T, dir, name, source string) string {
	t.Helper()
	if err := tools.Products(t.Context(), dir, map[string]string{name: source}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}
