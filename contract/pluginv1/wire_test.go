package pluginv1_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
)

// full has every field set, so that one that is lost on the way shows.
func full(code pluginv1.Code) *pluginv1.Error {
	e := &pluginv1.Error{
		Code: code, Message: "message", Hint: "hint", Detail: "raw output", Final: code == pluginv1.CodePrecondition,
		Facts:      map[string]string{"exitCode": "1", "phase": "preflight"},
		Violations: []document.Violation{{Field: "spec.a[0]", Message: "is wrong", Hint: "correct it"}, {Field: "spec.b"}},
	}
	if code == pluginv1.CodePrecondition {
		e.Violations[1].Needs = "unit:a.service#running"
	}
	if code == pluginv1.CodeRetry {
		e.RetryAfter = 1500 * time.Millisecond
	}
	return e
}

func TestErrorsArriveWhole(t *testing.T) {
	t.Parallel()
	for _, code := range []pluginv1.Code{
		pluginv1.CodeInternal, pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported, pluginv1.CodePrecondition, pluginv1.CodeRetry,
	} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			sent := full(code)
			wrapped := fmt.Errorf("while it worked: %w", sent)
			client := serveFake(t, &fake{
				describe: func() (pluginv1.Description, error) { return pluginv1.Description{}, wrapped },
				plan:     func(pluginv1.Request) (pluginv1.Plan, error) { return pluginv1.Plan{}, wrapped },
				apply: func(pluginv1.Request, int, func(pluginv1.Event) error) (pluginv1.Finished, error) {
					return pluginv1.Finished{}, wrapped
				},
				stop: func() error { return wrapped },
			})
			_, describeErr := client.Describe(t.Context(), pluginv1.DescribeRequest{})
			_, planErr := client.Plan(t.Context(), pluginv1.Request{})
			finished, err := client.Apply(t.Context(), pluginv1.Request{}, 0, nothing)
			if err != nil {
				t.Fatal(err)
			}
			for call, err := range map[string]error{
				"Describe": describeErr, "Plan": planErr, "Apply": finished.Error, "Stop": client.Stop(t.Context()),
			} {
				if got, ok := errors.AsType[*pluginv1.Error](err); !ok || !reflect.DeepEqual(got, sent) {
					t.Errorf("%s: %+v arrives, want %+v", call, err, sent)
				}
			}
		})
	}
}

// TestForeignErrorIsInternal: an error that is none of the contract is a defect of the plugin, with the text of the plugin.
func TestForeignErrorIsInternal(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops \xff")
	client := serveFake(t, &fake{
		plan: func(pluginv1.Request) (pluginv1.Plan, error) { return pluginv1.Plan{}, oops },
		apply: func(pluginv1.Request, int, func(pluginv1.Event) error) (pluginv1.Finished, error) {
			return pluginv1.Finished{Stopped: true}, oops
		},
	})
	_, planErr := client.Plan(t.Context(), pluginv1.Request{})
	finished, err := client.Apply(t.Context(), pluginv1.Request{}, 0, nothing)
	if err != nil || !finished.Stopped {
		t.Fatalf("finished %+v, %v", finished, err)
	}
	for call, err := range map[string]error{"Plan": planErr, "Apply": finished.Error} {
		e := pluginv1.AsError(err)
		if e.Code != pluginv1.CodeInternal || e.Message != "oops \uFFFD" {
			t.Errorf("%s: error %+v", call, e)
		}
	}
}

func TestEverythingArrives(t *testing.T) {
	t.Parallel()
	change := pluginv1.Change{ID: "a", Summary: "b", Diff: "c", NeedsLive: true, Reboot: pluginv1.RebootBeforeNext}
	other := pluginv1.Change{ID: "d", Summary: "e", Reboot: pluginv1.RebootAfterRun}
	warning := pluginv1.Warning{Field: "spec.x", Message: "hm"}
	description := pluginv1.Description{
		Name: "n", Version: "v", Fitness: pluginv1.FitnessActive, FitnessReason: "r",
		Distributions: []string{"debian"},
		Kinds: []pluginv1.Kind{
			{APIVersion: "a/v1", Kind: "K", Phase: pluginv1.PhaseProvisioning, JSONSchema: []byte("{}"), SecretFields: []string{"spec.a[].b"}, Provides: []string{"sysctl:"}},
			{APIVersion: "a/v1", Kind: "L", Phase: pluginv1.PhasePreparation},
			{APIVersion: "a/v1", Kind: "M", Phase: pluginv1.PhasePreparation, Provides: []string{}},
		},
	}
	request := pluginv1.Request{Document: []byte("{}"), Root: "/image", StateDir: "/state", Target: target.Target{
		OS: "linux", Architecture: "amd64", Distribution: "debian", Like: []string{"x"}, Version: "12", Name: "Debian", Kernel: "6", Hostname: "h",
	}}
	planning, applying := request, request
	planning.ClaimKey, applying.TimeLeft = []byte("key"), 90*time.Second
	claim := pluginv1.NewClaim(planning.ClaimKey, "file:/a", "spec.a", []byte("x"))
	plan := pluginv1.Plan{
		Changes: []pluginv1.Change{change, other}, Warnings: []pluginv1.Warning{warning}, Claims: []pluginv1.Claim{claim}, Needs: []string{"clock:"},
	}
	events := []pluginv1.Event{
		pluginv1.Started{Change: change},
		pluginv1.Progress{ID: "a", Message: "m", Reboot: pluginv1.RebootAfterRun},
		warning,
		pluginv1.Changed{ID: "a"},
	}
	end := pluginv1.Finished{Stopped: true, Deferred: []pluginv1.Change{other}}
	client := serveFake(t, &fake{
		describe: func() (pluginv1.Description, error) { return description, nil },
		plan: func(r pluginv1.Request) (pluginv1.Plan, error) {
			if !reflect.DeepEqual(r, planning) {
				t.Errorf("request %+v, want %+v", r, planning)
			}
			return plan, nil
		},
		apply: func(r pluginv1.Request, limit int, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
			if !reflect.DeepEqual(r, applying) || limit != 7 {
				t.Errorf("request %+v with the limit %d", r, limit)
			}
			var errs []error
			for _, e := range events {
				errs = append(errs, send(e))
			}
			if send(pluginv1.Finished{}) == nil {
				t.Error("finished could be sent as an event")
			}
			return end, errors.Join(errs...)
		},
		stop: func() error { return nil },
	})
	if got, err := client.Describe(t.Context(), pluginv1.DescribeRequest{Root: "/image", Target: request.Target}); err != nil || !reflect.DeepEqual(got, description) {
		t.Errorf("description %+v, %v", got, err)
	}
	if got, err := client.Plan(t.Context(), planning); err != nil || !reflect.DeepEqual(got, plan) {
		t.Errorf("plan %+v, %v", got, err)
	}
	var got []pluginv1.Event
	finished, err := client.Apply(t.Context(), applying, 7, func(e pluginv1.Event) error {
		got = append(got, e)
		return nil
	})
	if err != nil || !reflect.DeepEqual(finished, end) || !reflect.DeepEqual(got, events) {
		t.Errorf("finished %+v, %v; events %+v", finished, err, got)
	}
	if err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := client.Apply(t.Context(), request, -1, nothing); pluginv1.AsError(err) == nil {
		t.Error("a negative limit was taken")
	}
}

// TestHostStopsListening: what the host's own side says of an event ends the call.
func TestHostStopsListening(t *testing.T) {
	t.Parallel()
	full := errors.New("the journal is full")
	client := serveFake(t, &fake{
		apply: func(_ pluginv1.Request, _ int, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
			return pluginv1.Finished{}, send(pluginv1.Progress{Message: "a"})
		},
	})
	if _, err := client.Apply(t.Context(), pluginv1.Request{}, 0, func(pluginv1.Event) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v, want the host's own", err)
	}
}
