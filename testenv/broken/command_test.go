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
			{[]string{"--plugin", filepath.Join(dir, "none"), "--cases", cases}, 2, "--plugin"},
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
		if code != 0 || stderr != "" || !strings.Contains(stdout, "2 cases: ") || !strings.Contains(stdout, " 0 failed") {
			t.Errorf("sound: exit %d\n%s%s", code, stdout, stderr)
		}
		code, stdout, _ = command(t, judge, "--plugin", misnamed, "--cases", cases)
		if code != 1 || !strings.Contains(stdout, "fail  files/describe\n") || !strings.Contains(stdout, "[SPEC P-10") {
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
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || got.Failed != 2 {
			t.Fatalf("exit %d, %v\n%s", code, err, stdout)
		}
		if want := 2 * len(conformance.Checks()); len(got.Results) != want {
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
		if err := xml.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || len(got.Suites) != 2 {
			t.Fatalf("exit %d, %v\n%s", code, err, stdout)
		}
		for _, suite := range got.Suites {
			if suite.Failures != 1 || !strings.Contains(suite.Cases[0].Failure.Message, "somebody-else") {
				t.Errorf("%+v", suite)
			}
		}
	})
}

// TestWhatIsNoPlugin: a program that does not shake hands fails every check that starts it, and says why.
func TestWhatIsNoPlugin(t *testing.T) {
	t.Parallel()
	cases, err := conformance.LoadCases("testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	binary := build(t, t.TempDir(), naming.Binary(kind, "unheard-of"), ".")
	err = conformance.Suite{Binary: binary, Cases: cases[:1]}.Judge(t.Context(), func(r conformance.Result) {
		if r.Verdict == conformance.Pass {
			t.Errorf("%s passes", r.Check)
		}
		if r.Verdict == conformance.Fail && !strings.Contains(r.Reason, "there is no defect") {
			t.Errorf("%s does not give the plugin's last words: %s", r.Check, r.Reason)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
