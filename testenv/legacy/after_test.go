package legacy

import (
	"errors"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// TestPluginOfTheReleaseAfter: what a later release adds within the protocol version is ignored, or handled as the
// contract requires. The plugin also offers the next version of the protocol.
func TestPluginOfTheReleaseAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		provider string // "" is test
		named    bool   // the document names the provider
		spec     string
		args     []string
		exit     int
		outcomes string
		says     string
	}{
		"unknown fields and events are passed over": {spec: "touch: [a, b]", outcomes: "Changed"},
		"an unknown fitness is unsupported":         {provider: "fitness", spec: "touch: [a]", exit: report.ExitPrecondition, outcomes: "Failed", says: "fitness"},
		"a provider that is named is not chosen":    {provider: "fitness", named: true, spec: "touch: [a]", outcomes: "Changed"},
		"an unknown phase is provisioning":          {provider: "phase", spec: "touch: [a]", args: []string{"--phase", "preparation"}, outcomes: "Deferred"},
		"an unknown phase, in its turn":             {provider: "phase", spec: "touch: [a]", args: []string{"--phase", "provisioning"}, outcomes: "Changed"},
		"an unknown code of Plan is internal":       {spec: "touch: [a], fail: plan", exit: report.ExitFailed, outcomes: "Failed", says: "a code of a later day"},
		"an unknown code of Apply is internal":      {spec: "touch: [a], fail: apply", exit: report.ExitFailed, outcomes: "Failed", says: "a code of a later day"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.provider == "" {
				test.provider = provider
			}
			if test.named {
				test.spec += ", provider: " + test.provider
			}
			b := newBench(t, after, test.provider)
			got := b.host("apply", doc("a", test.spec), test.args...)
			if got.code != test.exit || got.outcomes() != test.outcomes || !strings.Contains(got.stderr, test.says) {
				t.Fatalf("%q, want exit %d, %q and %q: %s", got.outcomes(), test.exit, test.outcomes, test.says, got)
			}
			if b.has("a") != (test.outcomes == "Changed") {
				t.Errorf("the file is there: %v", b.has("a"))
			}
		})
	}
}

// TestRebootOfTheReleaseAfter: an unknown reboot is none, in a plan and while a change runs. Only a live machine would
// be rebooted, so today's client is asked.
func TestRebootOfTheReleaseAfter(t *testing.T) {
	t.Parallel()
	p := start(t, after, provider)
	r := request(t, `{"touch":["a"],"reboot":true}`)
	plan, err := p.Plan(t.Context(), r)
	if err != nil || len(plan.Changes) != 1 || plan.Changes[0].Reboot != pluginv1.RebootNone {
		t.Errorf("plan %+v, %v", plan, err)
	}
	var seen []pluginv1.Reboot
	finished, err := p.Apply(t.Context(), r, 0, func(e pluginv1.Event) error {
		switch e := e.(type) {
		case pluginv1.Started:
			seen = append(seen, e.Change.Reboot)
		case pluginv1.Progress:
			seen = append(seen, e.Reboot)
		}
		return nil
	})
	if err != nil || finished.Error != nil {
		t.Fatal(errors.Join(err, finished.Error))
	}
	if len(seen) != 2 || seen[0] != pluginv1.RebootNone || seen[1] != pluginv1.RebootNone {
		t.Errorf("reboots %v", seen)
	}
}
