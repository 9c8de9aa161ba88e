package kubernetesnode

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// applicant is a node that machineadm is about to make a member of a cluster.
type applicant struct {
	*nodes.Node
	address string
}

// newApplicant boots a node with the programs of a node and of machineadm.
func newApplicant(t *testing.T, network *nodes.Network, name string, controlPlane bool) applicant {
	t.Helper()
	programs := build(t)
	n := cluster.Boot(t, network, name, controlPlane)
	n.MustExec(t, "mkdir", "-p", "/usr/libexec/machineadm", "/etc/machineadm")
	for from, to := range programs {
		require.NoError(t, n.CopyIn(t.Context(), from, to, 0o755))
	}
	return applicant{n, network.Address(name).String()}
}

// run writes the stream with values in place of names, and runs machineadm with it.
func (a applicant) run(t *testing.T, command, text string, values ...string) nodes.Result {
	t.Helper()
	text = strings.NewReplacer(append(values, "ADDRESS", a.address)...).Replace(text)
	r, err := a.ExecInput(t.Context(), strings.NewReader(text), "sh", "-c", "umask 077 && cat >"+stream)
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, r.Stderr)
	began := time.Now()
	r, err = a.Exec(t.Context(), "machineadm", command, "--path", stream)
	require.NoError(t, err)
	t.Logf("%s: %s, exit code %d", command, time.Since(began).Round(100*time.Millisecond), r.ExitCode)
	return r
}

// applied runs machineadm apply, which succeeds.
func (a applicant) applied(t *testing.T, text string, values ...string) {
	t.Helper()
	if r := a.run(t, "apply", text, values...); r.ExitCode != 0 {
		details := a.MustExec(t, "sh", "-c", "cat /run/machineadm/details.json || true").Stdout
		t.Fatalf("exit status %d\n%s%s\n%s", r.ExitCode, r.Stdout, r.Stderr, strings.ReplaceAll(details, "\\n", "\n"))
	}
}

// failure is a run of machineadm apply that fails.
type failure struct {
	// text is what the stream has; NAME=VALUE pairs are replaced.
	text   string
	values []string
	// message is what everyone can read; cause the end of the line of another program, for root; remedy the beginning of the hint.
	message, cause, remedy string
	// phase is kubeadm's; empty if it does not run.
	phase string
	// wait is the first value of WAIT, unless it is 0. It doubles until the message is there: a busy machine starts containers late.
	wait time.Duration
}

// missing returns the first part of the line that is not in it, empty if it has all of them in their order.
func (f failure) missing(line string) string {
	for _, part := range []string{f.message, f.cause, "; remedy: " + f.remedy, "; running again is safe"} {
		_, after, found := strings.Cut(line, part)
		if !found {
			return part
		}
		line = after
	}
	return ""
}

// failed runs machineadm apply, which fails, and returns the first line of the status and the others.
func (a applicant) failed(t *testing.T, f failure) (first, rest string) {
	t.Helper()
	values := f.values
	if f.wait > 0 {
		values = append([]string{"WAIT", f.wait.String()}, values...)
	}
	r := a.run(t, "apply", f.text, values...)
	require.Equal(t, report.ExitPrecondition, r.ExitCode, r.Stdout+r.Stderr)
	first, rest, _ = strings.Cut(a.MustExec(t, "machineadm", "status").Stdout, "\n")
	t.Log(first)
	return first, rest
}

// fails runs machineadm apply and compares what an operator sees: the first line of the status, the exit code, the facts and
// who can read the causes. No secret is in a file beside the stream.
func (a applicant) fails(t *testing.T, f failure) report.Report {
	t.Helper()
	first, rest := a.failed(t, f)
	for f.missing(first) != "" && f.wait > 0 && f.wait < needs.Timeout(2*time.Minute) {
		f.wait *= 2
		first, rest = a.failed(t, f)
	}
	assert.Empty(t, f.missing(first), "it is not in %q", first)
	assert.Contains(t, rest, "exit code: 4\n")

	var run report.Report
	text := a.MustExec(t, "cat", "/run/machineadm/report.json").Stdout
	require.NoError(t, json.Unmarshal([]byte(text), &run))
	modes := a.MustExec(t, "sh", "-c", "cd /run/machineadm && stat -c '%n %a %U' report.json details.json || true").Stdout
	if f.phase == "" {
		assert.Equal(t, "report.json 644 root\n", modes)
		return run
	}
	assert.Equal(t, "report.json 644 root\ndetails.json 600 root\n", modes)
	assert.NotContains(t, text, f.cause, "the report has output of another program")
	facts := run.Errors[0].Facts
	assert.Equal(t, f.phase, facts["phase"])
	assert.Equal(t, "1", facts["exitCode"])
	assert.Contains(t, []string{"init", "join"}, facts["command"])
	assert.Equal(t, "v1.36.3 v1.36.3", facts["kubeadmVersion"]+" "+facts["kubernetesVersion"])
	assert.NotEmpty(t, facts["duration"])
	assert.Equal(t, stream+"\n", a.MustExec(t, "sh", "-c", secrets).Stdout)
	return run
}
