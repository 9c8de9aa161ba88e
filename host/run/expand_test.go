package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
)

// TestExpand: the documents of its stream take the place of a reference, in every order, and are planned before anything is applied.
func TestExpand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x")
	w.serve("web", map[string]string{
		"u:1": thing("b") + encrypted(t, "inner", thing("c")+remote("last", "u:2")) + thing("e"),
		"u:2": thing("d"),
	})
	stream := thing("a") + remote("first", "u:1") + thing("f")
	got := w.execute(Options{Mode: ModeApply, Text: []byte(stream)})
	require.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
	var ids, applied []string
	for _, d := range got.Documents {
		ids = append(ids, d.ID+" "+d.Kind+"/"+d.Name+" "+string(d.Outcome)+" "+d.Reason)
	}
	assert.Equal(t, []string{
		"1 Thing/a Changed ", "2 RemoteConfig/first Unchanged resolved", "2.1 Thing/b Changed ",
		"2.2 EncryptedConfig/inner Unchanged resolved", "2.2.1 Thing/c Changed ", "2.2.2 RemoteConfig/last Unchanged resolved",
		"2.2.2.1 Thing/d Changed ", "2.3 Thing/e Changed ", "3 Thing/f Changed ",
	}, ids)
	for line := range strings.Lines(w.lines()) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "apply "); ok {
			applied = append(applied, name[:1])
		}
	}
	assert.Equal(t, "abcdef", strings.Join(applied, ""))
	assert.Less(t, strings.LastIndex(w.lines(), "plan f"), strings.Index(w.lines(), "apply a"))
	assert.Empty(t, w.resolved, "what was resolved goes with the success")
	assert.NotEqual(t, fmt.Sprintf("%x", sha256.Sum256([]byte(stream))), got.StreamDigest)
	plan := w.execute(Options{Mode: ModePlan, Text: []byte(stream)})
	assert.Equal(t, report.ExitDiffers, plan.ExitCode)
	assert.Empty(t, w.resolved)
}

// TestExpandAtItsTurn: a source that can be reached only after another document is resolved then, and all documents of its stream
// is planned before any of it is applied.
func TestExpandAtItsTurn(t *testing.T) {
	t.Parallel()
	world := func(t *testing.T, object string) (*world, *fakeSource) {
		w := newWorld(t)
		w.add("x").plan = planFor(map[string]error{"wrong": invalid("spec.one")})
		s := w.serve("web", map[string]string{"u:1": object})
		s.answer = func(_ string, calls int) error {
			if strings.Contains(w.lines(), "apply a") && calls > 2 {
				return nil
			}
			return unreachable()
		}
		return w, s
	}
	stream := []byte(thing("a") + remote("r", "u:1") + thing("z"))
	t.Run("in order", func(t *testing.T) {
		t.Parallel()
		w, s := world(t, thing("b")+thing("c"))
		got := w.execute(Options{Mode: ModeApply, Text: stream})
		require.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
		assert.Equal(t, "Changed Unchanged/resolved Changed Changed Changed", outcomes(got))
		assert.Equal(t, strings.TrimSpace(`
fetch u:1
plan a by x
plan z by x
remove sentinel
apply a by x
fetch u:1
fetch u:1
plan b by x
plan c by x
apply b by x
apply c by x
apply z by x
write sentinel`), w.lines())
		assert.Equal(t, 5*time.Second, s.requests[0].RetryFor)
		assert.InDelta(t, ApplyTimeout.Seconds(), s.requests[1].RetryFor.Seconds(), 60)
	})
	t.Run("wrong", func(t *testing.T) {
		t.Parallel()
		w, _ := world(t, thing("b")+thing("wrong")+thing("c"))
		got := w.execute(Options{Mode: ModeApply, Text: stream})
		assert.Equal(t, report.ExitFailed, got.ExitCode)
		assert.Equal(t, "Changed Unchanged/resolved Skipped Failed Skipped Skipped", outcomes(got))
		require.Len(t, got.Errors, 1)
		assert.Equal(t, "RemoteConfig/r", got.Errors[0].File)
		assert.Equal(t, "Thing/wrong", got.Errors[0].Document)
		assert.NotContains(t, w.lines(), "apply b")
		assert.NotEmpty(t, w.resolved)
	})
	t.Run("not decoded", func(t *testing.T) {
		t.Parallel()
		w, _ := world(t, thing("b")+strings.Replace(thing("bad"), "spec:", "specs:", 1)+"---\n{\n")
		got := w.execute(Options{Mode: ModeApply, Text: stream})
		assert.Equal(t, report.ExitFailed, got.ExitCode)
		require.Greater(t, len(got.Errors), 1)
		assert.Equal(t, "Thing/bad", got.Errors[0].Document)
		assert.Equal(t, "RemoteConfig/r", got.Errors[len(got.Errors)-1].Document, "one without a name")
		assert.Equal(t, "RemoteConfig/r", got.Errors[0].File)
	})
	t.Run("conflict", func(t *testing.T) {
		t.Parallel()
		w, _ := world(t, thing("b"))
		w.plugins["x"].plan = func(name string, _ int) (pluginv1.Plan, error) {
			p := oneChange()
			if name != "z" {
				p.Claims = []pluginv1.Claim{{ID: "file:/etc/x", Digest: []byte(name)}}
			}
			return p, nil
		}
		got := w.execute(Options{Mode: ModeApply, Text: stream})
		assert.Equal(t, report.ExitFailed, got.ExitCode)
		assert.Contains(t, errorsOf(got), "sets file:/etc/x to another value than Thing/a at node.yaml:")
		assert.NotContains(t, w.lines(), "apply b")
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w, s := world(t, "")
			s.answer = func(string, int) error { return unreachable() }
			got := w.execute(Options{Mode: ModeApply, Text: []byte(strings.Replace(string(stream), "{name: r}", "{name: r, timeout: 50ms}", 1))})
			assert.Equal(t, report.ExitDeadline, got.ExitCode)
			assert.Equal(t, "Changed Failed Skipped", outcomes(got))
			assert.Contains(t, errorsOf(got), "no route to host")
		})
	})
	t.Run("often", func(t *testing.T) {
		t.Parallel()
		w, s := world(t, thing("b"))
		s.answer = func(_ string, calls int) error {
			if calls > 100 {
				return nil
			}
			return unreachable()
		}
		got := w.execute(Options{Mode: ModeApply, Text: stream})
		assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
	})
	t.Run("plan", func(t *testing.T) {
		t.Parallel()
		w, _ := world(t, thing("b"))
		got := w.execute(Options{Mode: ModePlan, Text: stream})
		assert.Equal(t, report.ExitDiffers, got.ExitCode)
		assert.Equal(t, "Changed  Changed", outcomes(got))
	})
}

// TestExpandRefuses: what is wrong in any stream ends the run before a change, with the chain of its documents.
func TestExpandRefuses(t *testing.T) {
	t.Parallel()
	deep := map[string]string{}
	for i := range 9 {
		deep[fmt.Sprint("u:", i)] = remote(fmt.Sprint("r", i+1), fmt.Sprint("u:", i+1))
	}
	var wide strings.Builder
	for i := range 65 {
		wide.WriteString(remote(fmt.Sprint("r", i), "u:1"))
	}
	for name, tt := range map[string]struct {
		stream  string
		objects map[string]string
		exit    int
		want    []string // parts of the errors, with their file
	}{
		"a syntax error": {remote("r", "u:1"), map[string]string{"u:1": thing("a") + "---\n{"}, report.ExitUsage, []string{"RemoteConfig/r:"}},
		"no document":    {remote("r", "u:1"), map[string]string{"u:1": ""}, report.ExitUsage, []string{"RemoteConfig/r"}},
		"several errors, in several streams": {
			remote("r", "u:1") + remote("s", "u:2"),
			map[string]string{"u:1": encrypted(t, "e", thing("wrong")), "u:2": "---\n{}\n"},
			report.ExitUsage,
			[]string{"RemoteConfig/r > EncryptedConfig/e:5:1 Thing/wrong", "RemoteConfig/s:"},
		},
		"a cycle": {
			remote("r", "u:1"),
			map[string]string{"u:1": remote("s", "u:2"), "u:2": remote("r", "u:1")},
			report.ExitUsage,
			[]string{"refers to itself: RemoteConfig/r > RemoteConfig/s > RemoteConfig/r"},
		},
		"a name twice": {
			thing("a") + remote("r", "u:1"), map[string]string{"u:1": thing("a")}, report.ExitUsage, []string{"has the same name as Thing/a"},
		},
		"too deep":       {remote("r0", "u:0"), deep, report.ExitUsage, []string{"is within more than 8 others"}},
		"too many":       {wide.String(), map[string]string{"u:1": "# nothing"}, report.ExitUsage, []string{"more than 64 other streams"}},
		"another digest": {remote("r", "u:1", "sha256: '"+strings.Repeat("0", 64)+"'"), map[string]string{"u:1": thing("a")}, report.ExitPrecondition, []string{"another digest"}},
		"no digest":      {remote("r", "u:1", "sha256: x"), nil, report.ExitUsage, []string{"is no SHA-256 digest"}},
		"no provider":    {reference("RemoteConfig", "r", "{uri: a}"), nil, report.ExitUsage, []string{"spec.provider: is missing"}},
		"no plugin":      {reference("RemoteConfig", "r", "{provider: y, uri: a}"), nil, report.ExitPrecondition, []string{"machineadm-remote-configuration-provider-y"}},
		"not there":      {remote("r", "u:9"), nil, report.ExitPrecondition, []string{"answered 404"}},
		"a file from the network": {
			remote("r", "u:1"),
			map[string]string{"u:1": reference("RemoteConfig", "f", "{provider: file, uri: /etc/shadow}")},
			report.ExitUsage,
			[]string{"must not read files"},
		},
		"a report from the network": {
			remote("r", "u:1"),
			map[string]string{"u:1": remote("s", "u:2", "report: {uri: a}") + reference("ReportTarget", "t", "{provider: web, uri: a}")},
			report.ExitUsage,
			[]string{"spec.report.uri", "must not say where the report goes"},
		},
		"a report from an encrypted stream": {
			encrypted(t, "e", reference("ReportTarget", "t", "{provider: web, uri: a}")), nil, report.ExitUsage,
			[]string{"ReportTarget/t kind", "must not say where the report goes"},
		},
		"another passphrase": {strings.Replace(encrypted(t, "e", thing("a")), `"e"`, `"f"`, 1), nil, report.ExitUsage, []string{"cannot be decrypted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.add("x").plan = planFor(map[string]error{"wrong": invalid("spec.one")})
			w.serve("web", tt.objects)
			got := w.execute(Options{Mode: ModeApply, Text: []byte(tt.stream + thing("last"))})
			assert.Equal(t, tt.exit, got.ExitCode, errorsOf(got))
			var text strings.Builder
			for _, e := range got.Errors {
				fmt.Fprintf(&text, "%s:%d:%d %s %s: %s\n", e.File, e.Line, e.Column, e.Document, e.Field, e.Message)
			}
			for _, want := range tt.want {
				assert.Contains(t, text.String(), want)
			}
			assert.NotContains(t, w.lines(), "apply")
		})
	}
}

// TestExpandKeeps: one-time answers survive a failed run, a corrected object is seen, and a resumed run fetches nothing.
func TestExpandKeeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plugin := w.add("x")
	plugin.apply = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not yet"}}, nil
	}
	s := w.serve("web", map[string]string{"u:1": thing("a")})
	stream := []byte(remote("r", "u:1"))
	got := w.execute(Options{Mode: ModeApply, Text: stream})
	require.Equal(t, report.ExitPrecondition, got.ExitCode, errorsOf(got))
	require.Len(t, w.resolved, 1)

	resumed := w.execute(Options{Mode: ModeApply, Text: stream, Resumed: true})
	assert.Equal(t, 1, s.calls["u:1"], "a resumed run fetches nothing")
	assert.Equal(t, "Unchanged/resolved Failed", outcomes(resumed))
	assert.Equal(t, got.StreamDigest, resumed.StreamDigest)

	for _, status := range []string{"401", "403", "404", "410"} {
		s.answer = func(string, int) error { return answered(status) }
		again := w.execute(Options{Mode: ModeApply, Text: stream})
		assert.Equal(t, "Unchanged/resolved Failed", outcomes(again))
		assert.Contains(t, strings.Join(again.Documents[0].Warnings, ""), "what an earlier try got is used: answered "+status)
	}
	s.answer = func(string, int) error { return answered("500") }
	assert.Equal(t, "Failed", outcomes(w.execute(Options{Mode: ModeApply, Text: stream})))

	s.answer, s.objects["u:1"] = nil, thing("b")
	plugin.apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{}, change(send, oneChange().Changes[0])
	}
	corrected := w.execute(Options{Mode: ModeApply, Text: stream})
	require.Equal(t, report.ExitOK, corrected.ExitCode)
	assert.Equal(t, "b", corrected.Documents[1].Name)
	assert.NotEqual(t, got.StreamDigest, corrected.StreamDigest)
	assert.Empty(t, w.resolved)
}

func TestExpandNeedsState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x")
	w.serve("web", map[string]string{"u:1": thing("a")})
	w.keptErr = errors.New("no space left on device")
	got := w.execute(Options{Mode: ModeApply, Text: []byte(remote("r", "u:1"))})
	assert.Equal(t, report.ExitState, got.ExitCode)
	assert.NotContains(t, w.lines(), "apply")
}

// TestExpandValidates: a validation contacts no source, and a ReportTarget is checked like one.
func TestExpandValidates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x")
	w.serve("web", map[string]string{"u:1": thing("a")})
	stream := []byte(reference("ReportTarget", "t", "{provider: web, uri: u}") + remote("r", "u:1") + encrypted(t, "e", thing("a")))
	got := w.execute(Options{Mode: ModeValidate, Text: stream})
	assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
	assert.Equal(t, "report t, validate only true\ncheck u:1\npassphrase e", w.lines())
}

// TestExpandWhen: a document for another machine is not resolved.
func TestExpandWhen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add("x")
	w.serve("web", nil)
	stream := strings.Replace(remote("r", "u:1"), "{name: r}", "{name: r, when: {os: [windows]}}", 1)
	got := w.execute(Options{Mode: ModeApply, Text: []byte(stream + thing("a"))})
	assert.Equal(t, "NotApplicable Changed", outcomes(got))
	assert.NotContains(t, w.lines(), "fetch")
}

// TestExpandSecretsInAnImage: the secrets that count are in the documents, not in the references.
func TestExpandSecretsInAnImage(t *testing.T) {
	t.Parallel()
	secret := strings.Replace(thing("a"), "provider: x", "provider: x, key: {value: s}", 1)
	for allowed, want := range map[bool]string{false: "Unchanged/resolved Failed", true: "Unchanged/resolved Changed"} {
		w := newWorld(t)
		w.add("x")
		w.serve("web", map[string]string{"u:1": secret})
		got := w.execute(Options{
			Mode: ModeApply, Root: "/image", AllowSecrets: allowed, Target: target.Target{OS: "linux"},
			Text: []byte(remote("r", "u:1", "providerConfig: {token: {value: s}}")),
		})
		assert.Equal(t, want, outcomes(got), errorsOf(got))
	}
}

// TestExpandIsInterrupted: an interruption ends a fetch at once, and a slow one leaves the document pending.
func TestExpandIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add("x")
		interrupt := make(chan struct{})
		s := w.serve("web", map[string]string{"u:1": thing("b")})
		s.onFetch = func(ctx context.Context, _ string) error {
			close(interrupt)
			<-ctx.Done()
			return ctx.Err()
		}
		got := w.execute(Options{Mode: ModeApply, Text: []byte(remote("r", "u:1")), Interrupt: interrupt})
		assert.Equal(t, report.ExitInterrupted, got.ExitCode)

		slow := newWorld(t)
		slow.add("x")
		slow.serve("web", map[string]string{"u:1": thing("b")}).onFetch = func(ctx context.Context, _ string) error {
			if strings.Contains(slow.lines(), "apply a") {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		got = slow.execute(Options{Mode: ModeApply, Text: []byte(thing("a") + remote("r", "u:1")), PlanTimeout: 20 * time.Millisecond})
		assert.Equal(t, report.ExitOK, got.ExitCode, errorsOf(got))
		assert.Equal(t, "Changed Unchanged/resolved Changed", outcomes(got))
	})
}
