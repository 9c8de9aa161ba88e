package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	kit := build(t, dir, "kit", "contract/conformance/cmd/machineadm-conformance")
	sound := build(t, dir, naming.Binary(kind, "sound"), "testenv/broken")
	misnamed := build(t, dir, naming.Binary(kind, "misnamed"), "testenv/broken")
	source := build(t, dir, naming.Binary("RemoteConfig", "sound"), "testenv/broken")
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
			{[]string{"--plugin", sound, "--cases", cases, "more"}, 2, "unexpected argument \"more\""},
			{[]string{"--plugin", sound, "--cases", cases, "--check", "plan", "--check", "kill"}, 2, "--check: there is no \"plan\": use one of nothing-outside, describe"},
			{[]string{"--plugin", sound, "--cases", cases, "--check", "umasks"}, 2, "did you mean umask?"},
			{[]string{"--plugin", sound, "--cases", cases, "--case", "file"}, 2, "--case: there is no \"file\": did you mean files?"},
			{[]string{"--plugin", sound, "--cases", cases, "-j", "0"}, 2, "-j must be at least 1"},
			{[]string{"init", "--plugin", sound}, 2, "--document is missing"},
			{[]string{"init", "--plugin", sound, "--document", "none"}, 2, "give one directory"},
			{[]string{"--plugin", sound, "--cases", filepath.Join(cases, "none")}, 2, "none"},
			{[]string{"--plugin", sound, "--cases", filepath.Join(cases, "files", "root")}, 2, "config.yaml"},
			{[]string{"--plugin", filepath.Join(dir, "none"), "--cases", cases}, 2, "--plugin: there is no plugin"},
			{[]string{"--plugin", sound, "--cases", cases, "--root", sound}, 2, "--root"},
			{[]string{"--no-such-flag"}, 2, "no-such-flag"},
			{[]string{"--plugin", sound, "--cases", cases, "--define", "c4n4ry"}, 2, "--define: give NAME=VALUE, with letters"},
		} {
			code, stdout, stderr := command(t, kit, tt.args...)
			if code != tt.code || !strings.Contains(stderr, tt.says) || stdout != "" {
				t.Errorf("%q: exit %d, stdout %q, stderr %q", tt.args, code, stdout, stderr)
			}
		}
		if code, stdout, _ := command(t, kit, "--help"); code != 0 || !strings.Contains(stdout, "-check name") || !strings.Contains(stdout, conformance.CaseFormat) {
			t.Errorf("--help: exit %d, %s", code, stdout)
		}
		code, stdout, stderr := command(t, kit, "--checks")
		require.Equal(t, 0, code, stderr)
		for _, lines := range []string{
			"links-out            links that point out of the root are followed inside it, or refused [SPEC G-15, P-16]\nno-command ",
			"umask                modes do not depend on the umask [SPEC G-11]\n" +
				"                     starts processes of its own: a process inherits its umask when it starts\nlinks-out ",
		} {
			require.Contains(t, stdout, lines)
		}
		for _, check := range conformance.Checks() {
			require.Contains(t, stdout, check.Says+" [SPEC "+check.Clause+"]\n")
			require.Contains(t, stdout, check.Fresh)
		}
	})
	t.Run("source", func(t *testing.T) {
		t.Parallel()
		first := filepath.Join(t.TempDir(), "first")
		require.NoError(t, os.MkdirAll(filepath.Join(first, "served"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(first, "served", "a"), []byte("a stream for ${canary}\n"), 0o600))
		document := filepath.Join(t.TempDir(), "a.yaml")
		text := "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: a}\n" +
			"spec: {provider: sound, uri: \"${server}/a\", providerConfig: {token: {value: secret word}}}\n"
		require.NoError(t, os.WriteFile(document, []byte(text), 0o600))
		code, _, stderr := command(t, kit, "init", "--plugin", source, "--document", document, first)
		require.Equal(t, 0, code, stderr)
		code, stdout, stderr := command(t, kit, "--plugin", source, "--cases", filepath.Dir(first))
		require.Equal(t, 0, code, stdout+stderr)
		require.Contains(t, stdout, "pass  first/object ")
		require.Contains(t, stdout, "13 passed, 0 failed")

		expected, err := os.ReadFile(filepath.Join(first, "expect.yaml"))
		require.NoError(t, err)
		require.Equal(t, "secrets:\n  - spec.providerConfig.token\nfile: a\n", string(expected))
		config := filepath.Join(first, "config.yaml")
		written, err := os.ReadFile(config)
		require.NoError(t, err)
		require.NotContains(t, string(written), "secret word")
		require.NoError(t, os.WriteFile(config, bytes.ReplaceAll(written, []byte("${server}"), []byte("${place}")), 0o600))
		code, _, stderr = command(t, kit, "--plugin", source, "--cases", filepath.Dir(first))
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "has ${place}, which has no value: define it (--define NAME=VALUE")
		code, stdout, stderr = command(t, kit, "--plugin", source, "--cases", filepath.Dir(first), "--define", "place="+first, "--check", "validate-only")
		require.Equal(t, 0, code, stdout+stderr)
	})
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		code, stdout, stderr := command(t, kit, "--plugin", sound, "--cases", cases, "--root", "testdata/base")
		listed := "n/a   stop applies to 3 of 5 cases\n      not-ready, refused: the document is refused\n"
		if code != 0 || stderr != "" || !strings.Contains(stdout, listed) || !strings.Contains(stdout, "5 cases by ") || !strings.Contains(stdout, " 0 failed") {
			t.Errorf("sound: exit %d\n%s%s", code, stdout, stderr)
		}
		code, stdout, _ = command(t, kit, "--plugin", misnamed, "--cases", cases)
		if code != 1 || !strings.Contains(stdout, "fail  files/describe  ") || !strings.Contains(stdout, "      expected: the file has the name") ||
			!strings.Contains(stdout, "      likely cause: a build under another name") || !strings.Contains(stdout, "violates SPEC N-1; the rule: Describe names") {
			t.Errorf("misnamed: exit %d\n%s", code, stdout)
		}
	})
	t.Run("json", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := command(t, kit, "--plugin", misnamed, "--cases", cases, "-o", "json")
		var got struct {
			Failed  int
			Results []conformance.Result
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || got.Failed != 5 {
			t.Fatalf("exit %d, %v\n%s", code, err, stdout)
		}
		const ofSources = 5 // checks that are for sources and key providers alone
		if want := 5 * (len(conformance.Checks()) - ofSources); len(got.Results) != want {
			t.Errorf("%d results, want %d", len(got.Results), want)
		}
	})
	t.Run("junit", func(t *testing.T) {
		t.Parallel()
		code, stdout, _ := command(t, kit, "--plugin", misnamed, "--cases", cases, "-o", "junit")
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
		if err := xml.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || len(got.Suites) != 5 {
			t.Fatalf("exit %d, %v\n%s", code, err, stdout)
		}
		for _, suite := range got.Suites {
			messages := ""
			for _, c := range suite.Cases {
				messages += c.Failure.Message
			}
			if suite.Failures != 1 || !strings.Contains(messages, "another-name") {
				t.Errorf("%+v", suite)
			}
		}
	})
}

// TestSelection: the named cases and checks run, in their own order.
func TestSelection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kit := build(t, dir, "kit", "contract/conformance/cmd/machineadm-conformance")
	misnamed := build(t, dir, naming.Binary(kind, "misnamed"), "testenv/broken")
	args := []string{"--plugin", misnamed, "--cases", "testdata/cases", "--check", "events", "--check", "describe", "--case", "refused", "--case", "files", "-o", "json"}
	for _, parallel := range []string{"1", "4"} {
		code, stdout, stderr := command(t, kit, append(args, "-j", parallel)...)
		var got struct{ Results []conformance.Result }
		require.NoError(t, json.Unmarshal([]byte(stdout), &got), "%s%s", stdout, stderr)
		require.Equal(t, 1, code)
		var order []string
		starts := 0
		for _, r := range got.Results {
			order = append(order, r.Case+"/"+r.Check+" "+string(r.Status))
			starts += r.Starts
		}
		require.Equal(t, []string{"files/describe fail", "files/events pass", "refused/describe fail", "refused/events pass"}, order)
		require.Equal(t, 4, starts, "a finding ends the process of a case")
	}
}

// TestInit: a case that init writes passes with the same plugin, and fails with one that makes another tree.
func TestInit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kit := build(t, dir, "kit", "contract/conformance/cmd/machineadm-conformance")
	sound := build(t, dir, naming.Binary(kind, "sound"), "testenv/broken")
	appending := build(t, dir, naming.Binary(kind, "appending"), "testenv/broken")
	cases := filepath.Join(dir, "cases")
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const head = "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: a}\n"
	secret := write("secret.yaml", head+"spec: # a comment stays\n  files: [{path: /etc/a, content: \"a\\n\"}]\n  tokenFile: /etc/token\n  token: {value: hunter2}\n")
	write("cases/secret/root/etc/other", "kept\n")
	for _, tt := range []struct{ name, document string }{
		{"secret", secret},
		{"refused", write("refused.yaml", head+"spec: {files: [{path: a}]}\n")},
		{"not-ready", write("not-ready.yaml", head+"spec: {needs: /etc/none}\n")},
		{"nothing", write("nothing.yaml", head+"spec: {}\n")},
	} {
		code, stdout, stderr := command(t, kit, "init", "--plugin", sound, "--document", tt.document, filepath.Join(cases, tt.name))
		require.Equal(t, 0, code, "%s: %s%s", tt.name, stdout, stderr)
		require.Contains(t, stdout, "--cases "+cases+" --case "+tt.name)
	}
	for name, want := range map[string]string{
		"secret/expect.yaml":      "modes:\n  etc/token: \"0600\"\n",
		"secret/config.yaml":      "spec: # a comment stays\n  files: [{path: /etc/a, content: \"a\\n\"}]\n  tokenFile: /etc/token\n  token: {value: \"${canary}\"}\n",
		"secret/expect/etc/token": "${canary}",
		"secret/expect/etc/other": "kept\n",
		"refused/expect.yaml":     "spec.files[0].path",
		"not-ready/expect.yaml":   "Precondition",
		"nothing/expect.yaml":     "changes: []",
	} {
		text, err := os.ReadFile(filepath.Join(cases, name))
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		require.NotContains(t, string(text), "hunter2")
	}
	require.NoDirExists(t, filepath.Join(cases, "nothing", "expect"))
	code, stdout, stderr := command(t, kit, "--plugin", sound, "--cases", cases)
	require.Equal(t, 0, code, "%s%s", stdout, stderr)
	code, stdout, _ = command(t, kit, "--plugin", appending, "--cases", cases, "--case", "secret", "--check", "outcome")
	require.Equal(t, 1, code, stdout)
	code, _, stderr = command(t, kit, "init", "--plugin", sound, "--document", secret, filepath.Join(cases, "secret"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "config.yaml exists: choose another directory")
	twice := write("twice.yaml", head+"spec: {files: [{path: /etc/a, content: hunter2}], tokenFile: /etc/token, token: {value: hunter2}}\n")
	code, _, stderr = command(t, kit, "init", "--plugin", sound, "--document", twice, filepath.Join(cases, "twice"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "the value of the secret field spec.token.value occurs 2 times")
}

// TestStartFailure: a program without the handshake is reported once, with its last output.
func TestStartFailure(t *testing.T) {
	t.Parallel()
	cases, err := conformance.LoadCases("testdata/cases")
	if err != nil {
		t.Fatal(err)
	}
	binary := build(t, t.TempDir(), naming.Binary(kind, "unheard-of"), "testenv/broken")
	var failures []string
	err = conformance.Suite{Binary: binary, Cases: cases}.Run(t.Context(), func(r conformance.Result) {
		switch r.Status {
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

// TestAScriptThatNeedsItsPath: a script starts as the runtime starts it, by a descriptor, beside which it finds nothing.
func TestAScriptThatNeedsItsPath(t *testing.T) {
	t.Parallel()
	cases, err := conformance.LoadCases("testdata/cases")
	require.NoError(t, err)
	dir := t.TempDir()
	sound := build(t, t.TempDir(), naming.Binary(kind, "sound"), "testenv/broken")
	require.NoError(t, os.Link(sound, filepath.Join(dir, "beside")))
	script := filepath.Join(dir, naming.Binary(kind, "sound"))
	for path, want := range map[string]conformance.Status{"$(dirname \"$0\")/beside": conformance.Fail, sound: conformance.Pass} {
		require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexec "+path+"\n"), 0o700))
		var got []conformance.Result
		err = conformance.Suite{Binary: script, Cases: cases[:1], Only: []string{"describe"}}.Run(t.Context(), func(r conformance.Result) { got = append(got, r) })
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, want, got[0].Status, got[0].Explain())
	}
}

// TestSlowStart: a start that exceeds its limit is tried once more, because the machine can be busy.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	cases, err := conformance.LoadCases("testdata/cases")
	require.NoError(t, err)
	dir := t.TempDir()
	sound := build(t, t.TempDir(), naming.Binary(kind, "sound"), "testenv/broken")
	slow := filepath.Join(dir, naming.Binary(kind, "sound"))
	const script = "#!/bin/sh\nif [ -n \"$MACHINEADM_PLUGIN_COOKIE\" ] && mkdir %[1]s/%[2]s; then exec tail -f /dev/null; fi\nexec %[3]s\n"
	for _, tt := range []struct {
		slow string // the names of the directories that the slow starts make
		want conformance.Status
	}{{"first", conformance.Pass}, {"$$", conformance.Fail}} {
		require.NoError(t, os.WriteFile(slow, fmt.Appendf(nil, script, dir, tt.slow, sound), 0o700))
		var got []conformance.Result
		err = conformance.Suite{
			Binary: slow, Cases: cases[:1], Only: []string{"describe"}, StartTimeout: 5 * time.Second,
		}.Run(t.Context(), func(r conformance.Result) { got = append(got, r) })
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, tt.want, got[0].Status, got[0].Explain())
		if tt.want == conformance.Fail {
			require.Equal(t, "H-13", got[0].Clause)
		}
	}
}
