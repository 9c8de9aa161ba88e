package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/contract/naming"
)

// command runs machineadm-conformance.
func command(t *testing.T, binary string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), binary, args...)
	var out, complaints strings.Builder
	c.Stdout, c.Stderr = &out, &complaints
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), complaints.String()
}

func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	judge := build(t, dir, "judge", "../../contract/conformance/cmd/machineadm-conformance")
	sound := build(t, dir, naming.Binary(kind, "sound"), ".")
	misnamed := build(t, dir, naming.Binary(kind, "misnamed"), ".")
	const cases = "testdata/cases"
	t.Run("usage", func(t *testing.T) {
		t.Parallel()
		for _, tt := range []struct {
			args []string
			code int
			says string
		}{
			{nil, 2, "--plugin is missing"},
			{[]string{"--plugin", sound}, 2, "--cases is missing"},
			{[]string{"--plugin", sound, "--cases", cases, "-o", "xml"}, 2, "-o must be"},
			{[]string{"--plugin", sound, "--cases", cases, "more"}, 2, "no arguments"},
			{[]string{"--plugin", sound, "--cases", filepath.Join(cases, "none")}, 2, "none"},
			{[]string{"--plugin", sound, "--cases", filepath.Join(cases, "files", "root")}, 2, "config.yaml"},
			{[]string{"--plugin", filepath.Join(dir, "none"), "--cases", cases}, 2, "--plugin: there is no plugin"},
			{[]string{"--plugin", sound, "--cases", cases, "--root", sound}, 2, "--root"},
			{[]string{"--no-such-flag"}, 2, "no-such-flag"},
		} {
			code, stdout, stderr := command(t, judge, tt.args...)
			if code != tt.code || !strings.Contains(stderr, tt.says) || stdout != "" {
				t.Errorf("%q: exit %d, stdout %q, stderr %q", tt.args, code, stdout, stderr)
			}
		}
		if code, stdout, _ := command(t, judge, "--checks"); code != 0 || !strings.Contains(stdout, "links-out") {
			t.Errorf("--checks: exit %d, %s", code, stdout)
		}
	})
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := command(t, judge, "--plugin", sound, "--cases", cases, "--root", "testdata/base")
		listed := "n/a   stop judged 1 of 3 cases\n      not-ready, refused: the document is refused\n"
		if code != 0 || stderr != "" || !strings.Contains(stdout, listed) || !strings.Contains(stdout, "3 cases by ") || !strings.Contains(stdout, " 0 failed") {
			t.Errorf("sound: exit %d\n%s%s", code, stdout, stderr)
		}
		code, stdout, _ = command(t, judge, "--plugin", misnamed, "--cases", cases)
		if code != 1 || !strings.Contains(stdout, "fail  files/describe\n") || !strings.Contains(stdout, "violates SPEC N-1; the rule: Describe names") {
			t.Errorf("misnamed: exit %d\n%s", code, stdout)
		}
	})
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := command(t, judge, "--plugin", misnamed, "--cases", cases, "-o", "json")
		var got struct {
			Failed  int
			Results []conformance.Result
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || got.Failed != 3 {
			t.Fatalf("exit %d, %v\n%s", code, err, stdout)
		}
		if want := 3 * len(conformance.Checks()); len(got.Results) != want {
			t.Errorf("%d results, want %d", len(got.Results), want)
		}
	})
	t.Run("junit", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := command(t, judge, "--plugin", misnamed, "--cases", cases, "-o", "junit")
		var got struct {
			Suites []struct {
				Name     string `xml:"name,attr"`
				Failures int    `xml:"failures,attr"`
				Cases    []struct {
					Failure struct {
						Message string `xml:"message,attr"`
					} `xml:"failure"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		if err := xml.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || len(got.Suites) != 3 {
			t.Fatalf("exit %d, %v\n%s", code, err, stdout)
		}
		for _, suite := range got.Suites {
			messages := ""
			for _, c := range suite.Cases {
				messages += c.Failure.Message
			}
			if suite.Failures != 1 || !strings.Contains(messages, "somebody-else") {
				t.Errorf("%+v", suite)
			}
		}
	})
}

// TestWhatIsNoPlugin: a program that does not shake hands is told once for a case, with its last words.
func TestWhatIsNoPlugin(t *testing.T) {
	t.Parallel()
	cases, err := conformance.LoadCases("testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	binary := build(t, t.TempDir(), naming.Binary(kind, "unheard-of"), ".")
	var failures []string
	err = conformance.Suite{Binary: binary, Cases: cases[:1]}.Judge(t.Context(), func(r conformance.Result) {
		switch r.Verdict {
		case conformance.Pass:
			t.Errorf("%s passes", r.Check)
		case conformance.Fail:
			failures = append(failures, r.Explain())
		case conformance.NotApplicable:
			if !strings.Contains(r.Reason, "the plugin does not start, see ") {
				t.Errorf("%s: %s", r.Check, r.Reason)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(failures) != 1 || !strings.Contains(failures[0], "there is no defect") || !strings.HasSuffix(failures[0], "\nviolates SPEC H-10") {
		t.Errorf("%q", failures)
	}
}
