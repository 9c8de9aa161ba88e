package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func running() machine.ServiceState {
	return machine.ServiceState{Active: "active", Sub: "running", Enabled: true, InvocationID: "1"}
}

func stopped() machine.ServiceState { return machine.ServiceState{Active: "inactive", Sub: "dead"} }

func TestServiceState(t *testing.T) {
	t.Parallel()
	on, off := sdk.ServiceSpec{Enabled: new(true), Running: new(true)}, sdk.ServiceSpec{Enabled: new(false), Running: new(false)}
	looping := machine.ServiceState{Active: "activating", Sub: "auto-restart", Enabled: true}
	masked := machine.ServiceState{Masked: true, Active: "inactive"}
	skipped := machine.ServiceState{Active: "inactive", Unmet: "ConditionVirtualization=!container"}
	for _, c := range []struct {
		name  string
		state machine.ServiceState
		want  sdk.ServiceSpec
		calls string // of the service manager
		code  pluginv1.Code
	}{
		{"on, is", running(), on, "", 0},
		{"on, is stopped", stopped(), on, "enable x.service, start x.service", 0},
		{"on, restarts repeatedly", looping, on, "start x.service", 0},
		{"on, is masked", masked, on, "", pluginv1.CodePrecondition},
		{"on, a condition is not met", skipped, on, "", pluginv1.CodePrecondition},
		{"off, a condition is not met", skipped, off, "", 0},
		{"off, is", stopped(), off, "", 0},
		{"off, runs", running(), off, "disable x.service, stop x.service", 0},
		{"off, restarts repeatedly", looping, off, "disable x.service, stop x.service", 0},
		{"off, is masked", masked, off, "", 0},
		{"enabled only", running(), sdk.ServiceSpec{Enabled: new(true), Running: new(false)}, "stop x.service", 0},
		{"running only", running(), sdk.ServiceSpec{Enabled: new(false), Running: new(true)}, "disable x.service", 0},
		{"enabled, running unmanaged", stopped(), sdk.ServiceSpec{Enabled: new(true)}, "enable x.service", 0},
		{"running, enabled unmanaged", stopped(), sdk.ServiceSpec{Running: new(true)}, "start x.service", 0},
		{"stopped, enabled unmanaged", running(), sdk.ServiceSpec{Running: new(false)}, "stop x.service", 0},
		{"disabled, running unmanaged", running(), sdk.ServiceSpec{Enabled: new(false)}, "disable x.service", 0},
		{"both unmanaged", masked, sdk.ServiceSpec{}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.Services.Put("x.service", c.state)
			changes, err := sdk.ServiceState(t.Context(), f.Machine, "x.service", c.want)
			if c.code != 0 {
				wantCode(t, err, c.code, "x.service")
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range changes {
				if err := change.Do(t.Context(), &recorder{}); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(f.Services.Calls(), ", "); got != c.calls {
				t.Errorf("calls %q, want %q", got, c.calls)
			}
			if again, err := sdk.ServiceState(t.Context(), f.Machine, "x.service", c.want); err != nil || len(again) != 0 {
				t.Errorf("afterwards %d changes are planned (%v)", len(again), err)
			}
		})
	}
}

func TestServiceStateOfAbsentUnit(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	_, err := sdk.ServiceState(t.Context(), f.Machine, "x.service", sdk.ServiceSpec{Running: new(true)})
	wantCode(t, err, pluginv1.CodePrecondition, "not installed")
	if changes, err := sdk.ServiceState(t.Context(), f.Machine, "x.service", sdk.ServiceSpec{}); err != nil || len(changes) != 0 {
		t.Errorf("%d changes to stop an absent unit (%v)", len(changes), err)
	}
}

// TestServiceThatEndsAtOnce: a successful start is not enough.
func TestServiceThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Services.Put("x.service", stopped())
	changes, err := sdk.ServiceState(t.Context(), dying(f), "x.service", sdk.ServiceSpec{Running: new(true)})
	if err != nil || len(changes) != 1 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	wantCode(t, changes[0].Do(t.Context(), &recorder{}), pluginv1.CodePrecondition, "ended right after its start")
}

// dying is a machine whose services never run, although every start succeeds.
func dying(f *machinetest.Fixture) sdk.Machine {
	f.Machine.Services = noRunning{f.Services}
	return f.Machine
}

type noRunning struct{ *machinetest.Services }

func (noRunning) Do(context.Context, string, machine.Action) error { return nil }

const unitFile = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"

func TestImageRoot(t *testing.T) {
	t.Parallel()
	unix(t)
	m, root := machinetest.NewImage(t)
	if err := m.FS.WriteFile("/usr/lib/systemd/system/x.service", []byte(unitFile), 0o644); err != nil {
		t.Fatal(err)
	}
	var plan sdk.Plan
	add := func(changes []*sdk.Change, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		plan.Add(changes...)
	}
	add(sdk.ServiceState(t.Context(), m, "x.service", sdk.ServiceSpec{Enabled: new(true), Running: new(true)}))
	dropIn, err := sdk.DropIn(t.Context(), m, "x.service", "10-x", "[Service]\nNice=1\n")
	add([]*sdk.Change{dropIn}, err)
	add(sdk.Activate(t.Context(), m, sdk.Activation{
		Unit: "x.service", Files: []sdk.FileSpec{{Path: "/etc/x.conf", Content: []byte("x\n"), Mode: 0o640}},
	}))
	var got []string
	for _, c := range plan.Changes {
		got = append(got, fmt.Sprint(c.ID, " ", c.NeedsLive))
		if c.NeedsLive {
			continue
		}
		if err := c.Do(t.Context(), &recorder{}); err != nil {
			t.Error(err)
		}
	}
	want := "enable:x.service false, start:x.service true, file:/etc/systemd/system/x.service.d/10-x.conf false, " +
		"file:/etc/x.conf false, activate:x.service true"
	if strings.Join(got, ", ") != want {
		t.Errorf("planned\n%q, want\n%q", strings.Join(got, ", "), want)
	}
	tree := machinetest.Tree(t, root)
	for _, line := range []string{
		"/etc/systemd/system/multi-user.target.wants/x.service -> /usr/lib/systemd/system/x.service\n",
		"-rw-r----- /etc/x.conf ", "-rw-r--r-- /etc/systemd/system/x.service.d/10-x.conf ",
	} {
		if !strings.Contains(tree, line) {
			t.Errorf("the tree lacks %q:\n%s", line, tree)
		}
	}
	left, err := sdk.Activate(t.Context(), m, sdk.Activation{
		Unit: "x.service", Files: []sdk.FileSpec{{Path: "/etc/x.conf", Content: []byte("x\n"), Mode: 0o640}},
	})
	if err != nil || len(left) != 1 || !left[0].NeedsLive {
		t.Errorf("afterwards %d changes are planned (%v), want the one for first boot", len(left), err)
	}
	_, err = sdk.Activate(t.Context(), m, sdk.Activation{Unit: "y.service", Files: []sdk.FileSpec{{Path: "/etc/y", Mode: 0o644}}})
	wantCode(t, err, pluginv1.CodePrecondition, "y.service is not installed")
	left, err = sdk.Activate(t.Context(), m, sdk.Activation{
		Unit: "y.service", BeforeInstall: true, Files: []sdk.FileSpec{{Path: "/etc/y", Mode: 0o644}},
	})
	if err != nil || len(left) != 2 || left[0].NeedsLive || !left[1].NeedsLive {
		t.Errorf("before y.service is installed %d changes are planned (%v), want the file and the one for first boot", len(left), err)
	}
}

const (
	dropInPath = "/etc/systemd/system/x.service.d/10-x.conf"
)

func TestDropIn(t *testing.T) {
	t.Parallel()
	unix(t)
	f := machinetest.New(t)
	f.Services.Put("x.service", running())
	plan := func() *sdk.Change {
		t.Helper()
		change, err := sdk.DropIn(t.Context(), f.Machine, "x.service", "10-x", "[Service]\nNice=1\n")
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	do := func(change *sdk.Change) {
		t.Helper()
		if change == nil {
			t.Fatal("nothing is planned")
		}
		if err := change.Do(t.Context(), &recorder{}); err != nil {
			t.Fatal(err)
		}
	}
	change := plan()
	do(change)
	if change.ID != "file:"+dropInPath || !strings.Contains(change.Diff, "+Nice=1\n") {
		t.Errorf("change %+v", change)
	}
	if data, err := f.Machine.FS.ReadFile(dropInPath); err != nil || string(data) != "[Service]\nNice=1\n" {
		t.Errorf("the file holds %q (%v)", data, err)
	}
	if change := plan(); change != nil {
		t.Errorf("afterwards %q is planned", change.Summary)
	}
	// The file matches, but systemd has not read it.
	unread := running()
	unread.NeedReload = true
	f.Services.Put("x.service", unread)
	do(plan())
	if got := strings.Join(f.Services.Calls(), ", "); got != "daemon-reload, daemon-reload" {
		t.Errorf("calls %q", got)
	}
}

// TestDropInIsReadAfterACrash: NeedReload of systemd depends on clocks, so it is false here.
func TestDropInIsReadAfterACrash(t *testing.T) {
	t.Parallel()
	unix(t)
	f := machinetest.New(t)
	f.Services.Put("x.service", running())
	f.Services.Failures["daemon-reload"] = errors.New("the process ends here")
	for _, fails := range []bool{true, false} {
		change, err := sdk.DropIn(t.Context(), f.Machine, "x.service", "10-x", "[Service]\nNice=1\n")
		if err != nil || change == nil {
			t.Fatalf("change %v, %v", change, err)
		}
		if err := change.Do(t.Context(), &recorder{}); (err != nil) != fails {
			t.Fatalf("error %v", err)
		}
		delete(f.Services.Failures, "daemon-reload")
	}
	if change, err := sdk.DropIn(t.Context(), f.Machine, "x.service", "10-x", "[Service]\nNice=1\n"); change != nil || err != nil {
		t.Errorf("afterwards: change %v, %v", change, err)
	}
}

func TestDropInRefusals(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	for _, names := range [][2]string{{"x", "a"}, {"../x.service", "a"}, {"x.service", "a/b"}, {"x.service", ""}, {"x.service", ".a"}} {
		f.Machine.Target = target.Target{OS: "linux"}
		if _, err := sdk.DropIn(t.Context(), f.Machine, names[0], names[1], ""); err == nil {
			t.Errorf("unit %q, drop-in %q: no error", names[0], names[1])
		}
	}
	f.Machine.Target = target.Target{OS: "windows"}
	_, err := sdk.DropIn(t.Context(), f.Machine, "x.service", "a", "")
	wantCode(t, err, pluginv1.CodeUnsupported, "systemd")
}
