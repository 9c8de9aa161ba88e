package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// The kind of these tests. Count is a number of changes; the password is a secret.
const (
	apiVersion = "example.com/v1"
	kind       = "Probe"
)

type probe struct {
	v1alpha1.Header
	Spec probeSpec `json:"spec"`
}

type probeSpec struct {
	Provider string          `json:"provider,omitempty"`
	Count    int             `json:"count,omitempty"`
	Hosts    []string        `json:"hosts,omitempty"`
	Password v1alpha1.Secret `json:"password,omitzero"`
}

func document(spec string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"},"spec":%s}`, apiVersion, kind, spec)
}

// plugin returns a plugin with this plan function.
func plugin(plan sdk.PlanFunc[probe]) sdk.Plugin {
	return sdk.Plugin{
		Name: "tester", Version: "1.2.3", OS: []string{machinetest.Target().OS},
		Kinds: []sdk.Kind{sdk.For(apiVersion, kind, sdk.PhaseProvisioning, plan)},
	}
}

func configurator(plan sdk.PlanFunc[probe]) pluginv1.Configurator {
	return sdk.NewConfigurator(plugin(plan), machinetest.Target().OS)
}

// live is a request for the machine that the test runs on, which the planned changes do not modify.
func live(doc []byte) pluginv1.Request {
	return pluginv1.Request{Document: doc, Target: machinetest.Target()}
}

// changes plans n changes, which append their ID to done.
func changes(n int, done *[]string) sdk.Plan {
	var plan sdk.Plan
	for i := range n {
		id := fmt.Sprint("change-", i)
		plan.Add(&sdk.Change{ID: id, Summary: "do " + id, Do: func(context.Context, sdk.Progress) error {
			*done = append(*done, id)
			return nil
		}})
	}
	return plan
}

func nothing(pluginv1.Event) error { return nil }

func TestStrictDocument(t *testing.T) {
	t.Parallel()
	m := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		t.Error("a document with errors was planned")
		return sdk.Plan{}, nil
	})
	doc := document(`{"count":"canary1","hosts":["a",{"b":"canary2"}],"nonsense":"canary3","password":"canary4","count":2}`)
	_, planErr := m.Plan(t.Context(), live(doc))
	_, applyErr := m.Apply(t.Context(), live(doc), 0, nothing)
	for name, err := range map[string]error{"Plan": planErr, "Apply": applyErr} {
		wantCode(t, err, pluginv1.CodeInvalidConfig, "")
		var fields []string
		for _, v := range pluginv1.AsError(err).Violations {
			fields = append(fields, v.Field)
		}
		slices.Sort(fields)
		if got := strings.Join(slices.Compact(fields), " "); got != "spec.count spec.hosts[1] spec.nonsense spec.password" {
			t.Errorf("%s: the violations are of %q", name, got)
		}
		if strings.Contains(fmt.Sprintf("%+v %v", pluginv1.AsError(err), err), "canary") {
			t.Errorf("%s: the error quotes a value: %v", name, err)
		}
	}
}

func TestUnservedDocument(t *testing.T) {
	t.Parallel()
	m := configurator(nil)
	_, err := m.Plan(t.Context(), live([]byte(`{"apiVersion":"example.com/v2","kind":"Probe"}`)))
	wantCode(t, err, pluginv1.CodeUnsupported, "does not serve Probe of example.com/v2")
	_, err = m.Plan(t.Context(), live([]byte(`{"canary`)))
	wantCode(t, err, pluginv1.CodeInternal, "not JSON")
	if strings.Contains(err.Error(), "canary") {
		t.Errorf("error %v", err)
	}
}

func TestInvalidPlans(t *testing.T) {
	t.Parallel()
	do := func(context.Context, sdk.Progress) error { t.Error("a change was made"); return nil }
	for name, c := range map[string]struct {
		changes []sdk.Change
		text    string
	}{
		"duplicate":  {[]sdk.Change{{ID: "a", Summary: "a", Do: do}, {ID: "a", Summary: "b", Do: do}}, "two planned changes have the ID a"},
		"no Do":      {[]sdk.Change{{ID: "b", Summary: "b", Do: do}, {ID: "a", Summary: "a"}}, "the change a has no Do"},
		"no ID":      {[]sdk.Change{{Summary: "a", Do: do}}, "no ID"},
		"no summary": {[]sdk.Change{{ID: "a", Do: do}}, "no summary"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return sdk.Plan{Changes: c.changes}, nil })
			_, planErr := m.Plan(t.Context(), live(document(`{}`)))
			_, applyErr := m.Apply(t.Context(), live(document(`{}`)), 0, nothing)
			wantCode(t, planErr, pluginv1.CodeInternal, c.text)
			wantCode(t, applyErr, pluginv1.CodeInternal, c.text)
		})
	}
}

func TestWrongOperatingSystem(t *testing.T) {
	t.Parallel()
	never := func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		t.Error("it was planned")
		return sdk.Plan{}, nil
	}
	windows := target.Target{OS: "windows"}
	for name, c := range map[string]struct {
		goos string
		t    target.Target
		text string
	}{
		"the target is another one": {"linux", windows, "was built for linux, the target is windows"},
		"it does not serve its own": {"windows", windows, "provider tester does not serve windows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plugin(never)
			p.OS = []string{"linux"}
			p.Fit = func(context.Context, sdk.Machine) (sdk.Fitness, string, error) { return sdk.FitnessActive, "fits", nil }
			m := sdk.NewConfigurator(p, c.goos)
			d, err := m.Describe(t.Context(), pluginv1.DescribeRequest{Target: c.t})
			if err != nil || d.Fitness != sdk.FitnessUnsupported || !strings.Contains(d.FitnessReason, c.text) {
				t.Errorf("described as %v, %q (%v)", d.Fitness, d.FitnessReason, err)
			}
			r := pluginv1.Request{Document: document(`{}`), Target: c.t}
			_, err = m.Plan(t.Context(), r)
			wantCode(t, err, pluginv1.CodeUnsupported, c.text)
			_, err = m.Apply(t.Context(), r, 0, nothing)
			wantCode(t, err, pluginv1.CodeUnsupported, c.text)
		})
	}
}

func noPlan(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return sdk.Plan{}, nil }

func TestDescribe(t *testing.T) {
	t.Parallel()
	p := plugin(nil)
	describe := func() pluginv1.Description {
		t.Helper()
		d, err := sdk.NewConfigurator(p, machinetest.Target().OS).Describe(t.Context(), pluginv1.DescribeRequest{Target: machinetest.Target()})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := describe()
	if d.Name != "tester" || d.Version != "1.2.3" || d.Fitness != sdk.FitnessInstalled {
		t.Errorf("described as %+v", d)
	}
	if k, ok := d.Serves(apiVersion, kind); !ok || k.Phase != sdk.PhaseProvisioning {
		t.Errorf("it serves %+v", d.Kinds)
	}
	none, something := sdk.For(apiVersion, "None", 0, noPlan), sdk.For(apiVersion, "Some", 0, noPlan)
	p.Kinds = append(p.Kinds, none.Provides(), something.Provides("sysctl:"))
	d = describe()
	assert.Equal(t, [][]string{nil, {}, {"sysctl:"}}, [][]string{d.Kinds[0].Provides, d.Kinds[1].Provides, d.Kinds[2].Provides})
	p.Fit = func(context.Context, sdk.Machine) (sdk.Fitness, string, error) {
		return sdk.FitnessAbsent, "no chronyd", nil
	}
	if d = describe(); d.Fitness != sdk.FitnessAbsent || d.FitnessReason != "no chronyd" {
		t.Errorf("described as %+v", d)
	}
	p.Fit = func(context.Context, sdk.Machine) (sdk.Fitness, string, error) { return 0, "", errors.New("broken") }
	_, err := sdk.NewConfigurator(p, machinetest.Target().OS).Describe(t.Context(), pluginv1.DescribeRequest{Target: machinetest.Target()})
	wantCode(t, err, pluginv1.CodeInternal, "broken")
}

// TestNeedsLive: in an image, changes that need a live machine are deferred and do not count for the limit.
func TestNeedsLive(t *testing.T) {
	t.Parallel()
	var done []string
	m := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		plan := changes(3, &done)
		plan.Changes[0].NeedsLive, plan.Changes[2].NeedsLive = true, true
		return plan, nil
	})
	r := live(document(`{}`))
	r.Root = machinetest.Root(t)
	finished, err := m.Apply(t.Context(), r, 1, nothing)
	if err != nil || finished.Stopped || fmt.Sprint(done) != "[change-1]" {
		t.Errorf("finished %+v (%v), done %v", finished, err, done)
	}
	if len(finished.Deferred) != 2 || finished.Deferred[0].ID != "change-0" || finished.Deferred[1].ID != "change-2" {
		t.Errorf("deferred %+v", finished.Deferred)
	}
	done = nil
	m = configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		plan := changes(4, &done)
		plan.Changes[0].NeedsLive, plan.Changes[3].NeedsLive = true, true
		return plan, nil
	})
	if finished, err = m.Apply(t.Context(), r, 1, nothing); err != nil || !finished.Stopped || len(done) != 1 || len(finished.Deferred) != 2 {
		t.Errorf("limited: finished %+v (%v), done %v", finished, err, done)
	}
	done = nil
	if finished, err = m.Apply(t.Context(), live(document(`{}`)), 0, nothing); err != nil || len(done) != 4 || len(finished.Deferred) != 0 {
		t.Errorf("live: done %v, deferred %v (%v)", done, finished.Deferred, err)
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]struct {
		done    int
		stopped bool
	}{0: {3, false}, 1: {1, true}, 2: {2, true}, 3: {3, false}, 4: {3, false}} {
		var done []string
		m := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return changes(3, &done), nil })
		finished, err := m.Apply(t.Context(), live(document(`{}`)), limit, nothing)
		if err != nil || len(done) != want.done || finished.Stopped != want.stopped {
			t.Errorf("limit %d: %d done, stopped %v (%v); want %+v", limit, len(done), finished.Stopped, err, want)
		}
	}
}

// TestStop: the current change is finished, and no other begins.
func TestStop(t *testing.T) {
	t.Parallel()
	var m pluginv1.Configurator
	var done []string
	m = configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) {
		plan := changes(3, &done)
		first := plan.Changes[0].Do
		plan.Changes[0].Do = func(ctx context.Context, p sdk.Progress) error {
			if err := errors.Join(m.Stop(ctx), m.Stop(ctx)); err != nil {
				return err
			}
			return errors.Join(ctx.Err(), first(ctx, p))
		}
		return plan, nil
	})
	finished, err := m.Apply(t.Context(), live(document(`{}`)), 0, nothing)
	if err != nil || !finished.Stopped || fmt.Sprint(done) != "[change-0]" {
		t.Errorf("finished %+v (%v), done %v", finished, err, done)
	}
	m = configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return changes(1, &done), nil })
	if err := m.Stop(t.Context()); err != nil { // nothing is running
		t.Error(err)
	}
	if finished, err := m.Apply(t.Context(), live(document(`{}`)), 0, nothing); err != nil || finished.Stopped {
		t.Errorf("an earlier Stop stopped it: %+v (%v)", finished, err)
	}
}

// TestHostIsGone: when the host receives no events any more, no change begins.
func TestHostIsGone(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	var done []string
	m := configurator(func(context.Context, sdk.Machine, probe) (sdk.Plan, error) { return changes(2, &done), nil })
	_, err := m.Apply(t.Context(), live(document(`{}`)), 0, func(e pluginv1.Event) error {
		if s, ok := e.(pluginv1.Started); ok && s.Change.ID == "change-1" {
			return gone
		}
		return nil
	})
	if !errors.Is(err, gone) || fmt.Sprint(done) != "[change-0]" {
		t.Errorf("error %v, done %v", err, done)
	}
}

// TestSecretIsRedacted: formatted into plans, events and errors, a secret is redacted.
func TestSecretIsRedacted(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	var sent strings.Builder
	m := configurator(func(_ context.Context, _ sdk.Machine, want probe) (sdk.Plan, error) {
		if string(want.Spec.Password.Reveal()) != canary {
			t.Error("the plugin did not get its secret")
		}
		_, marshalErr := json.Marshal(want)
		var plan sdk.Plan
		plan.Warn("spec.password", fmt.Sprintf("%v %+v %#v %s %x", want, want, want, want.Spec.Password, want.Spec.Password))
		plan.Add(&sdk.Change{
			ID: fmt.Sprintf("%+v", want), Summary: fmt.Sprint(&want), Diff: fmt.Sprintf("%#v", &want),
			Do: func(_ context.Context, p sdk.Progress) error {
				p.Report(fmt.Sprint(want))
				return fmt.Errorf("cannot use %+v: %w", want, marshalErr)
			},
		})
		return plan, nil
	})
	r := live(document(`{"password":{"value":"` + canary + `"}}`))
	plan, err := m.Plan(t.Context(), r)
	fmt.Fprintf(&sent, "%+v %v", plan, err)
	finished, err := m.Apply(t.Context(), r, 0, func(e pluginv1.Event) error {
		fmt.Fprintf(&sent, "%+v", e)
		return nil
	})
	fmt.Fprintf(&sent, "%+v %+v", finished, pluginv1.AsError(err))
	for _, form := range []string{canary, fmt.Sprintf("%x", canary), fmt.Sprintf("%d", []byte(canary))} {
		if strings.Contains(sent.String(), form) {
			t.Errorf("the secret shows as %q", form)
		}
	}
	if !strings.Contains(sent.String(), v1alpha1.Redacted) || !strings.Contains(sent.String(), "cannot use") {
		t.Errorf("sent only %q", sent.String())
	}
}
