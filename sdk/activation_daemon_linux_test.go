package sdk_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const daemonConfig = "/etc/scriptd/scriptd.conf"

// TestActivationOfARealDaemon runs real processes: a daemon that refuses a configuration, dies, hangs or is late.
func TestActivationOfARealDaemon(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, old, want string
		timeout         time.Duration
		// message and detail are parts of the error, empty for success; now is the daemon's answer afterwards, empty when
		// it does not run.
		message, detail, now string
		starts               int
	}{
		{name: "success", old: "ok", want: "ok\n", now: "ok", starts: 2},
		{name: "healthy after a while", old: "ok", want: "late", now: "late", starts: 2},
		{name: "first configuration", want: "ok", now: "ok", starts: 1},
		{
			name: "refused by the checker", old: "ok", want: "refuse", now: "ok", starts: 1,
			message: "failed, nothing was changed: scriptd: exit code 1", detail: "line 1: the mode refuse is refused",
		},
		{
			name: "ends at its start", old: "ok", want: "exit", now: "ok", starts: 3,
			message: "the old configuration was restored, and scriptd.service runs with it",
		},
		{
			name: "dies after its restart", old: "ok", want: "die", now: "ok", starts: 3,
			message: "the old configuration was restored, and scriptd.service runs with it",
		},
		{
			name: "hangs", old: "ok", want: "hang", now: "ok", starts: 3, timeout: 4 * time.Second,
			message: "did not take effect (not healthy within LIMIT: ",
		},
		{
			name: "does not start with the old one either", old: "once", want: "exit", starts: 3,
			message: "the old configuration was restored, but scriptd.service does not run with it either (it ended (failed))",
		},
		{
			name: "first configuration is bad", want: "exit", starts: 1,
			message: "the old configuration was restored, and scriptd.service does not run, as before",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.timeout == 0 {
				c.timeout = 2 * time.Minute
			}
			f, s := daemonFixture(t, c.old)
			a := activation(f, s, c.want, c.timeout)
			err := activate(t, f.Machine, a, 1)
			for c.timeout < time.Minute && err != nil && strings.Contains(err.Error(), "does not run with it either") {
				// The limit holds for the old configuration too, for which a busy machine takes longer.
				c.timeout *= 2
				f, s = daemonFixture(t, c.old)
				a = activation(f, s, c.want, c.timeout)
				err = activate(t, f.Machine, a, 1)
			}
			c.message = strings.Replace(c.message, "LIMIT", c.timeout.String(), 1)
			switch e, known := errors.AsType[*pluginv1.Error](err); {
			case c.message == "" && err == nil:
			case !known || c.message == "" || e.Code != pluginv1.CodePrecondition || e.Hint == "" ||
				!strings.Contains(e.Message, c.message) || !strings.Contains(e.Detail, c.detail):
				t.Fatalf("error %v, want %q and the detail %q", err, c.message, c.detail)
			}
			if s.starts != c.starts {
				t.Errorf("the daemon was started %d times, want %d", s.starts, c.starts)
			}
			expect(t, f, s, c.now)
			if _, err := f.Machine.FS.Lstat(filepath.Dir(daemonConfig)); c.old == "" && c.now == "" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory of the candidate stays (%v)", err)
			}
			if c.message == "" {
				if err := activate(t, f.Machine, a, 0); err != nil { // converged
					t.Error(err)
				}
			}
		})
	}
}

// daemonFixture is a machine whose only service is the scripted daemon; with an old mode, it runs.
func daemonFixture(t *testing.T, old string) (*machinetest.Fixture, *supervisor) {
	t.Helper()
	f := machinetest.New(t)
	s := newSupervisor(t, filepath.Join(f.Root, daemonConfig))
	f.Machine.Services, f.Machine.Commands = s, machine.NewRunner(filepath.Dir(s.program))
	if old == "" {
		return f, s
	}
	f.WriteFiles(t, map[string]string{daemonConfig: "mode: " + old})
	if err := s.Do(t.Context(), "", machine.Start); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; {
		err := s.healthy(t.Context(), f.Machine, &recorder{})
		if err == nil {
			return f, s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the daemon does not become healthy: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func activation(f *machinetest.Fixture, s *supervisor, mode string, timeout time.Duration) sdk.Activation {
	return sdk.Activation{
		Unit: "scriptd.service", Timeout: timeout, Healthy: s.healthy,
		Files: []sdk.FileSpec{{Path: daemonConfig, Content: []byte("mode: " + mode), Mode: 0o644}},
		Check: func(ctx context.Context, m sdk.Machine, candidates map[string]string) error {
			_, err := m.Commands.Run(ctx, machine.Command{
				Name: daemonName, Args: []string{"--check", filepath.Join(f.Root, candidates[daemonConfig])},
			})
			return err
		},
	}
}

// expect checks the daemon's answer, its configuration file, and that no other file is left.
func expect(t *testing.T, f *machinetest.Fixture, s *supervisor, mode string) {
	t.Helper()
	answer := ""
	if state, err := s.State(t.Context(), ""); err != nil || state.Active == "active" {
		if answer, err = s.ask(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if answer != mode {
		t.Errorf("the daemon answers %q, want %q", answer, mode)
	}
	if mode != "" {
		data, err := f.Machine.FS.ReadFile(daemonConfig)
		if err != nil || strings.TrimSpace(string(data)) != "mode: "+mode {
			t.Errorf("the configuration is %q (%v), want the mode %q", data, err, mode)
		}
	}
	names, err := f.Machine.FS.ReadDir(filepath.Dir(daemonConfig))
	if mode == "" && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || strings.Contains(strings.Join(names, " "), "machineadm") {
		t.Errorf("in the directory of the configuration are %q (%v)", names, err)
	}
}
