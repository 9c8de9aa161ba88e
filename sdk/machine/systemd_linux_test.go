package machine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const showLine = "systemctl show --property=Id,Names,LoadState,UnitFileState,ActiveState,SubState,InvocationID,MainPID,FragmentPath," +
	"ExecStart,Environment,NeedDaemonReload,ConditionResult,ConditionTimestampMonotonic -- "

func liveSystemd(t *testing.T) (machine.Services, *machinetest.Runner) {
	t.Helper()
	commands := machinetest.NewRunner(t)
	return machine.NewSystemd(commands, t.TempDir()), commands
}

func shown(lines ...string) machine.Result {
	return machine.Result{Stdout: []byte(strings.Join(lines, "\n") + "\n")}
}

func TestSystemdState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		shown []string
		want  machine.ServiceState
	}{
		"running": {
			[]string{
				"MainPID=42", "FragmentPath=/lib/systemd/system/chrony.service", "LoadState=loaded",
				"ActiveState=active", "SubState=running", "UnitFileState=enabled", "InvocationID=0123abc",
			},
			machine.ServiceState{
				Exists: true, Enabled: true, FileState: "enabled", Active: "active", Sub: "running", InvocationID: "0123abc",
				MainPID: 42, Fragment: "/lib/systemd/system/chrony.service",
			},
		},
		"command and environment": {
			[]string{
				"ExecStart={ path=/usr/sbin/chronyd ; argv[]=/usr/sbin/chronyd -F 1 ; ignore_errors=no ; start_time=[n/a] }",
				`Environment=A=1 "B=two words" "C=a \"quote\" and \\" D= E=per%cent "F=dollar\$X" "G=it's"`, "LoadState=loaded",
			},
			machine.ServiceState{
				Exists: true, Command: []string{"/usr/sbin/chronyd", "-F", "1"},
				Environment: []string{"A=1", "B=two words", `C=a "quote" and \`, "D=", "E=per%cent", "F=dollar$X", "G=it's"},
			},
		},
		"absent": {
			[]string{"LoadState=not-found", "ActiveState=inactive", "SubState=dead", "MainPID=0"},
			machine.ServiceState{Active: "inactive", Sub: "dead"},
		},
		"masked": {[]string{"LoadState=masked", "UnitFileState=masked"}, machine.ServiceState{Exists: true, Masked: true, FileState: "masked"}},
		"masked while running": {
			[]string{"LoadState=loaded", "UnitFileState=masked-runtime", "ActiveState=active"},
			machine.ServiceState{Exists: true, Masked: true, FileState: "masked-runtime", Active: "active"},
		},
		"static": {[]string{"LoadState=loaded", "UnitFileState=static"}, machine.ServiceState{Exists: true, FileState: "static"}},
		"an alias": {
			[]string{"Id=chronyd.service", "Names=chronyd.service chrony.service", "LoadState=loaded", "NeedDaemonReload=yes"},
			machine.ServiceState{
				ID: "chronyd.service", Names: []string{"chronyd.service", "chrony.service"}, Exists: true, NeedReload: true,
			},
		},
		"until reboot":       {[]string{"LoadState=loaded", "UnitFileState=enabled-runtime"}, machine.ServiceState{Exists: true, FileState: "enabled-runtime"}},
		"broken":             {[]string{"LoadState=bad-setting", "UnitFileState=enabled"}, machine.ServiceState{Exists: true, Enabled: true, FileState: "enabled"}},
		"not even a service": {[]string{"LoadState=loaded", "UnitFileState="}, machine.ServiceState{Exists: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			services, commands := liveSystemd(t)
			commands.On(showLine+"chrony.service", shown(test.shown...))
			if got, err := services.State(context.Background(), "chrony"); err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("state %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// TestSystemdStates: several units are queried by one command.
// TestSystemdConditions: a condition that kept the unit from starting is found, unless a file or another machine's state decides it.
func TestSystemdConditions(t *testing.T) {
	t.Parallel()
	skipped := []string{"Id=x-y.service", "LoadState=loaded", "ActiveState=inactive", "ConditionResult=no", "ConditionTimestampMonotonic=12"}
	const path, container = "x-y.service: ConditionPathExists=!/etc/x succeeded.\n", "x-y.service: ConditionVirtualization=!container failed.\nConditions failed.\n"
	for name, tt := range map[string]struct {
		shown machine.Result
		want  string
	}{
		"one":           {machine.Result{ExitCode: 1, Stderr: []byte(path + container)}, "ConditionVirtualization=!container"},
		"on the output": {machine.Result{ExitCode: 1, Stdout: []byte(path + container)}, "ConditionVirtualization=!container"},
		"a file":        {machine.Result{ExitCode: 1, Stderr: []byte("x-y.service: ConditionPathExists=/etc/x failed.\nConditions failed.\n")}, ""},
		"any":           {machine.Result{ExitCode: 1, Stderr: []byte("x-y.service: ConditionHost=|node failed.\n")}, ""},
		"met meanwhile": {machine.Result{Stderr: []byte(path)}, ""},
		"systemd 249":   {machine.Result{ExitCode: 1, Stderr: []byte("systemd-analyze: unrecognized option '--unit=x-y.service'\n")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			services, commands := liveSystemd(t)
			commands.On(showLine+"x-y.service", shown(skipped...))
			commands.On("systemd-analyze condition --unit=x-y.service", tt.shown)
			state, err := services.State(t.Context(), "x-y")
			if err != nil || state.Unmet != tt.want {
				t.Errorf("unmet %q (%v), want %q", state.Unmet, err, tt.want)
			}
		})
	}
}

func TestSystemdStates(t *testing.T) {
	t.Parallel()
	services, commands := liveSystemd(t)
	commands.On(showLine+"a.service b.socket", shown("Id=a.service", "LoadState=loaded", "", "Id=b.socket", "LoadState=not-found"))
	got, err := services.States(t.Context(), "a", "b.socket")
	want := []machine.ServiceState{{ID: "a.service", Exists: true}, {ID: "b.socket"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("states %+v, %v", got, err)
	}
	if got, err := services.States(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("no units: %+v, %v", got, err)
	}
	commands.On(showLine+"a.service c.service", shown("Id=a.service", "LoadState=loaded"))
	if _, err := services.States(t.Context(), "a", "c"); err == nil || !strings.Contains(err.Error(), "c.service") {
		t.Errorf("error %v, want one that names the unit", err)
	}
}

func TestSystemdActions(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	services, commands := liveSystemd(t)
	commands.On("systemctl --no-ask-password ...", machine.Result{})
	commands.On("systemctl show ...", shown("LoadState=loaded"))
	must(t, services.Do(ctx, "a", machine.Start), services.Do(ctx, "a.socket", machine.Stop),
		services.Do(ctx, "a@b", machine.Restart), services.Do(ctx, "a", machine.Reload), services.DaemonReload(ctx))
	want := showLine + "a.service\nsystemctl --no-ask-password --quiet start -- a.service\n" +
		"systemctl --no-ask-password --quiet stop -- a.socket\n" +
		showLine + "a@b.service\nsystemctl --no-ask-password --quiet restart -- a@b.service\n" +
		"systemctl --no-ask-password --quiet reload -- a.service\n" +
		"systemctl --no-ask-password daemon-reload"
	if got := strings.Join(commands.Lines(), "\n"); got != want {
		t.Errorf("commands\n%s\nwant\n%s", got, want)
	}
	if err := services.Do(ctx, "a", machine.Action(0)); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("error %v for no action, want fs.ErrInvalid", err)
	}
}

func TestSystemdErrorsHaveUnitAndHint(t *testing.T) {
	t.Parallel()
	services, commands := liveSystemd(t)
	commands.On("systemctl --no-ask-password ...", machine.Result{ExitCode: 1, Stderr: []byte("Job for chrony.service failed")})
	commands.On("systemctl show ...", shown("LoadState=loaded", "ActiveState=inactive"))
	err := services.Do(context.Background(), "chrony", machine.Restart)
	failure, ok := errors.AsType[*machine.ServiceError](err)
	if !ok || failure.Unit != "chrony.service" || failure.Action != "restart" {
		t.Errorf("error %#v, want a ServiceError", err)
	}
	if got := fmt.Sprint(err); got != "restart chrony.service: systemctl: exit code 1 (see journalctl -u chrony.service)" {
		t.Errorf("error %q", got)
	}
	if command, ok := errors.AsType[*machine.CommandError](err); !ok || command.Stderr != "Job for chrony.service failed" {
		t.Error("the output of systemctl is missing")
	}
}

// TestSystemdStartLimit: a start beyond the start limit is repeated once; any other failed start is not.
func TestSystemdStartLimit(t *testing.T) {
	t.Parallel()
	const restart, reset = "systemctl --no-ask-password --quiet restart -- a.service", "systemctl --no-ask-password --quiet reset-failed -- a.service"
	for name, test := range map[string]struct {
		invocation, active string // after the restart failed
		again              int    // the exit status of the second restart
		want               []string
		fails              bool
	}{
		"too many starts":     {"one", "failed", 0, []string{restart, reset, restart}, false},
		"and it fails again":  {"one", "failed", 1, []string{restart, reset, restart}, true},
		"a new invocation":    {"two", "failed", 0, []string{restart}, true},
		"a failed dependency": {"one", "inactive", 0, []string{restart}, true},
		"repeated restarts":   {"two", "activating", 0, []string{restart}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			services, commands := liveSystemd(t)
			tried := 0
			commands.OnFunc(restart, func(context.Context, machine.Command) (machine.Result, error) {
				tried++
				if tried == 1 {
					return machine.Result{ExitCode: 1}, nil
				}
				return machine.Result{ExitCode: test.again}, nil
			})
			commands.OnFunc(showLine+"a.service", func(context.Context, machine.Command) (machine.Result, error) {
				if tried == 0 {
					return shown("LoadState=loaded", "ActiveState=active", "InvocationID=one"), nil
				}
				return shown("LoadState=loaded", "ActiveState="+test.active, "InvocationID="+test.invocation), nil
			})
			commands.On(reset, machine.Result{})
			if err := services.Do(context.Background(), "a", machine.Restart); (err != nil) != test.fails {
				t.Errorf("error %v", err)
			}
			var did []string
			for _, line := range commands.Lines() {
				if !strings.HasPrefix(line, "systemctl show") {
					did = append(did, line)
				}
			}
			if !slices.Equal(did, test.want) {
				t.Errorf("commands %q, want %q", did, test.want)
			}
		})
	}
}

func TestSystemdVerifiesEnabling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		enable bool
		after  string
		fails  bool
	}{
		{true, "enabled", false},
		{true, "static", true},
		{true, "disabled", true},
		{true, "indirect", true},
		{false, "disabled", false},
		{false, "static", false},
		{false, "enabled", true},
	} {
		services, commands := liveSystemd(t)
		commands.On("systemctl --no-ask-password ...", machine.Result{})
		commands.On(showLine+"a.service", shown("LoadState=loaded", "UnitFileState="+test.after))
		err := services.SetEnabled(context.Background(), "a", test.enable)
		if test.fails != (err != nil) || err != nil && !strings.Contains(err.Error(), test.after) {
			t.Errorf("enable %v, then %s: error %v", test.enable, test.after, err)
		}
	}
}

func TestNotBootedBySystemd(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	services := machine.NewSystemd(machinetest.NewRunner(t), filepath.Join(t.TempDir(), "absent"))
	_, state := services.State(ctx, "a")
	for _, err := range []error{state, services.SetEnabled(ctx, "a", true), services.Do(ctx, "a", machine.Start), services.DaemonReload(ctx)} {
		if !errors.Is(err, machine.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("error %v, want ErrUnsupported", err)
		}
	}
}

func TestUnitNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "-H", "--now", ".service", "a b", "a/b", "../a", "a@", "a@.service", "a\n", "ä", strings.Repeat("a", 201)} {
		services, _ := liveSystemd(t) // without answers: a command fails the test
		_, live := services.State(context.Background(), name)
		m, _ := machinetest.NewImage(t)
		_, image := m.Services.State(context.Background(), name)
		for _, err := range []error{live, image} {
			if !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%.20q: error %v, want fs.ErrInvalid", name, err)
			}
		}
	}
}
