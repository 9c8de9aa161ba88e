package store_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/controller/store"
	"github.com/machineadm/machineadm/host/reporting/words"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func failed() report.Report {
	return report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "run-1", StartedAt: at("2026-11-27T10:00:00Z"), FinishedAt: at("2026-11-27T10:00:42Z"),
		Outcome: report.RunFailed, ExitCode: report.ExitFailed, Host: report.Host{Distribution: "debian", Arch: "amd64", Machineadm: "0.1.0"},
		Errors: []report.Error{{
			Code: "Precondition", Document: "KubernetesNode/node", Message: "kubeadm ended with exit code 1", Hint: "look at the endpoint",
			Facts: map[string]string{"phase": "preflight", "exitCode": "1"},
		}},
		Documents: []report.Document{
			{Kind: "Sysctl", Name: "base", Outcome: report.Changed, DurationMs: 120},
			{Kind: "KubernetesNode", Name: "node", Outcome: report.Failed, Errors: []int{0}, DurationMs: 41000},
		},
	}
}

func encoded(t *testing.T, r report.Report) []byte {
	t.Helper()
	body, err := json.Marshal(r)
	require.NoError(t, err)
	return body
}

// TestReported: the status has what an operator looks for, and its message is the first line of machineadm status.
func TestReported(t *testing.T) {
	t.Parallel()
	r := failed()
	b, err := store.Reported(encoded(t, r), 7, at("2026-11-27T10:00:43Z"))
	require.NoError(t, err)
	assert.Equal(t, words.Headline(r, false), b.Message)
	text, err := json.MarshalIndent(b, "", " ")
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"sequence": 7, "reportedAt": "2026-11-27T10:00:43Z", "runID": "run-1", "outcome": "Failed", "exitCode": 1, "document": "KubernetesNode/node",
		"phase": "preflight", "code": "Precondition", "hint": "look at the endpoint", "facts": {"phase": "preflight", "exitCode": "1"},
		"message": "Failed at KubernetesNode/node while applying: kubeadm ended with exit code 1; remedy: look at the endpoint; running again is safe",
		"startedAt": "2026-11-27T10:00:00Z", "finishedAt": "2026-11-27T10:00:42Z",
		"documents": [{"name": "Sysctl/base", "outcome": "Changed", "duration": "120ms"}, {"name": "KubernetesNode/node", "outcome": "Failed", "duration": "41s"}]
	}`, string(text))
}

// TestReportedRefuses: what is no report of a machine changes nothing, and the error quotes nothing of it.
func TestReportedRefuses(t *testing.T) {
	t.Parallel()
	const canary = "canary-5f1e"
	of := func(change func(*report.Report)) []byte {
		r := failed()
		r.RunID = canary
		change(&r)
		return encoded(t, r)
	}
	good := of(func(*report.Report) {})
	for name, c := range map[string]struct {
		body     []byte
		sequence uint64
		want     string
	}{
		"empty":              {nil, 1, "JSON"},
		"cut":                {good[:len(good)/2], 1, "JSON"},
		"a list":             {append(append([]byte("["), good...), ']'), 1, "JSON"},
		"two reports":        {append(append([]byte{}, good...), good...), 1, "behind its end"},
		"text behind":        {append(append([]byte{}, good...), "x"...), 1, "behind its end"},
		"another encoding":   {append([]byte{0xff, 0xfe}, good...), 1, "UTF-8"},
		"a number as text":   {[]byte(strings.Replace(string(good), `"exitCode":1`, `"exitCode":"`+canary+`"`, 1)), 1, "type"},
		"another kind":       {of(func(r *report.Report) { r.Kind = canary }), 1, "kind"},
		"another version":    {of(func(r *report.Report) { r.APIVersion = canary }), 1, "apiVersion"},
		"no outcome":         {of(func(r *report.Report) { r.Outcome = "" }), 1, "outcome"},
		"another outcome":    {of(func(r *report.Report) { r.Outcome = canary }), 1, "outcome"},
		"exit code 256":      {of(func(r *report.Report) { r.ExitCode = 256 }), 1, "exitCode"},
		"exit code -1":       {of(func(r *report.Report) { r.ExitCode = -1 }), 1, "exitCode"},
		"of an image":        {of(func(r *report.Report) { r.Root = "/mnt/" + canary }), 1, "root"},
		"no number":          {good, 0, "sequence"},
		"a number too large": {good, math.MaxInt64 + 1, "sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := store.Reported(c.body, c.sequence, time.Now())
			var invalid *store.InvalidReportError
			require.ErrorAs(t, err, &invalid)
			assert.Contains(t, err.Error(), c.want)
			assert.NotContains(t, err.Error(), canary)
		})
	}
}

// TestReportedBounds: a report of the largest size keeps within what the custom resource accepts, and no text of it can forge a line.
func TestReportedBounds(t *testing.T) {
	t.Parallel()
	r := failed()
	evil := strings.Repeat("\x1b[2K\u202e\n\"ä", 4000)
	first := &r.Errors[0]
	r.RunID, first.Code, first.Message, first.Hint, first.Document = evil, evil, evil, evil, evil
	for i := range 100 {
		first.Facts[fmt.Sprint(i, evil)] = evil
		r.Documents = append(r.Documents, report.Document{Kind: evil, Name: evil, Outcome: report.Outcome(evil), DurationMs: math.MaxInt64})
	}
	b, err := store.Reported(encoded(t, r), 1, time.Now())
	require.NoError(t, err)
	assert.Len(t, b.Documents, 100)
	assert.LessOrEqual(t, len(b.Facts), 16)
	for text, limit := range map[string]int{b.RunID: 64, b.Code: 64, b.Message: 4096, b.Hint: 1024, b.Document: 512, b.Documents[50].Name: 512} {
		assert.LessOrEqual(t, utf8.RuneCountInString(text), limit)
		assert.NotContains(t, text, "\n")
		assert.NotContains(t, text, "\x1b")
		assert.NotContains(t, text, "\u202e")
	}
	body, err := json.Marshal(b)
	require.NoError(t, err)
	assert.Less(t, len(body), 256<<10)
}

// TestReportedIgnores: a newer machineadm may say more (SPEC, section 12), and times that JSON does not hold are left out.
func TestReportedIgnores(t *testing.T) {
	t.Parallel()
	body := strings.Replace(string(encoded(t, failed())), `"runID"`, `"later":{"a":[1]},"runID"`, 1)
	b, err := store.Reported([]byte(body), 1, time.Now())
	require.NoError(t, err)
	assert.Equal(t, "run-1", b.RunID)
	r := failed()
	r.FinishedAt = time.Time{}
	b, err = store.Reported(encoded(t, r), 1, time.Now())
	require.NoError(t, err)
	assert.Nil(t, b.FinishedAt)
}

func FuzzReported(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"machineadm.cluster.x-k8s.io/v1alpha1","kind":"RunReport","outcome":"Succeeded","documents":[{"kind":"A","name":"b"}]}`), uint64(1))
	f.Add([]byte(`{"apiVersion":"machineadm.cluster.x-k8s.io/v1alpha1","kind":"RunReport","outcome":"Failed","errors":[{"message":"\u202e"}]}`), uint64(1))
	f.Fuzz(func(t *testing.T, body []byte, sequence uint64) {
		b, err := store.Reported(body, sequence, time.Unix(1, 0))
		if err != nil {
			return
		}
		text, err := json.Marshal(b)
		require.NoError(t, err)
		require.Less(t, len(text), 256<<10)
		require.LessOrEqual(t, utf8.RuneCountInString(b.Message), 4096)
	})
}
