package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// showPlan is a plan for people and for comparison.
func showPlan(p sdk.Plan, err error) string {
	if err != nil {
		known := pluginv1.AsError(err)
		return fmt.Sprintf("error %s\nhint: %s\n", known.Error(), known.Hint)
	}
	var b strings.Builder
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s: %s\n", w.Field, w.Message)
	}
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "== %s: %s (live %v)\n%s", c.ID, c.Summary, c.NeedsLive, c.Diff)
	}
	if b.Len() == 0 {
		return "converged\n"
	}
	return b.String()
}

const planSpec = `{"cgroupDriver":"systemd","sandboxImage":"registry.example.com/pause:3.10","snapshotter":"native",` +
	`"registries":{"registry.example.com":{"mirrors":[{"url":"https://mirror.example.com","headers":{"X":{"value":"c4n4ry"}}}],"auth":{"username":"robot","password":{"value":"c4n4ry"}}}},` +
	`"proxy":{"httpsSecret":{"value":"http://u:c4n4ry@proxy.example.com:3128"},"noProxy":["10.0.0.0/8"]}}`

func TestPlan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, version, spec string
		files               map[string]string
		kubeadm             string
	}{
		{name: "1.7", version: "1.7.24", spec: planSpec},
		{name: "2.1", version: "v2.1.9", spec: planSpec},
		{name: "2.3", version: "v2.3.7", spec: planSpec},
		{name: "not-for-this-release", version: "1.6.20", spec: `{"cdi":{"enabled":true},"cni":{"binDirs":["/a","/b"]}}`},
		{name: "by-hand-hosts", version: "1.7.24", spec: planSpec, files: map[string]string{"/etc/containerd/certs.d/registry.example.com/hosts.toml": "server = 'x'\n"}},
		{name: "kubeadm", version: "1.7.24", spec: `{"sandboxImage":"registry.example.com/pause:3.9"}`, kubeadm: "example.com/kube-proxy:v1\nexample.com/pause:3.10\n"},
		{name: "kubeadm-agrees", version: "1.7.24", spec: `{"sandboxImage":"registry.example.com/pause:3.10"}`, kubeadm: "example.com/pause:3.10\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := containerdtest.Live(t, "/usr/bin/containerd", c.version)
			f.WriteFiles(t, c.files)
			if c.kubeadm != "" {
				f.Commands.On("kubeadm version --output=short", machine.Result{Stdout: []byte("v1.33.1\n")})
				f.Commands.On("kubeadm config images list --kubernetes-version=v1.33.1", machine.Result{Stdout: []byte(c.kubeadm)})
			}
			got := showPlan(plan(t.Context(), f.Machine, containerdtest.ContainerRuntime(t, c.spec)))
			containerdtest.Golden(t, "plan/"+c.name+".txt", got)
			if strings.Contains(got, "c4n4ry") {
				t.Error("the plan shows a secret")
			}
		})
	}
}

// TestOpenFiles: RLIMIT_NOFILE above fs.nr_open is an error of the plan, which names the parameter that a Sysctl document can set.
func TestOpenFiles(t *testing.T) {
	t.Parallel()
	f := containerdtest.Live(t, "/usr/bin/containerd", "v2.1.9")
	const spec = `{"runtimes":{"runc":{"baseSpec":{"rlimits":{"RLIMIT_NOFILE":{"soft":1024,"hard":2000000}}}}}}`
	f.Kernel.Parameters["fs/nr_open"] = "1048576\n"
	_, err := plan(t.Context(), f.Machine, containerdtest.ContainerRuntime(t, spec))
	e := pluginv1.AsError(err)
	require.Equal(t, pluginv1.CodePrecondition, e.Code)
	require.Equal(t, []sdk.Violation{{
		Field: "spec.runtimes.runc.baseSpec.rlimits.RLIMIT_NOFILE.hard", Message: "is above fs.nr_open, which is 1048576, and no container of this runtime starts",
		Hint: "use a smaller limit, or put a Sysctl document with a greater fs.nr_open before this one", Needs: "sysctl:fs.nr_open",
	}}, e.Violations)
	f.Kernel.Parameters["fs/nr_open"] = "2000000\n"
	require.NoError(t, openFiles(f.Machine, wanted(t, "linux", spec)))
}

type quiet struct{}

func (quiet) Report(string) {}

func (quiet) Warn(string, string) {}

func (quiet) RequestReboot(sdk.Reboot) {}

// TestDaemonDecides: what the program does not take is not brought in, and what cannot be asked is no success.
func TestDaemonDecides(t *testing.T) {
	t.Parallel()
	f := containerdtest.Live(t, "/usr/bin/containerd", "1.7.24")
	f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": "version = 2\n"})
	answer := machine.Result{Stdout: []byte("version = 2\n")}
	f.Commands.OnFunc("containerd --config ...", func(context.Context, machine.Command) (machine.Result, error) { return answer, nil })
	apply := func() error {
		p, err := plan(t.Context(), f.Machine, containerdtest.ContainerRuntime(t, `{"snapshotter":"native"}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range p.Changes {
			err = errors.Join(err, change.Do(t.Context(), quiet{}))
		}
		return err
	}
	err := apply()
	if err == nil || !strings.Contains(err.Error(), "spec.snapshotter") {
		t.Errorf("got %v", err)
	}
	text, readErr := f.Machine.FS.ReadFile("/etc/containerd/config.toml")
	if readErr != nil || string(text) != "version = 2\n" || len(f.Services.Calls()) > 0 {
		t.Errorf("something was changed: %s, %v, %v", text, readErr, f.Services.Calls())
	}
	if left := machinetest.Tree(t, f.Root); strings.Contains(left, "candidate") {
		t.Errorf("candidates are left:\n%s", left)
	}
	answer = machine.Result{ExitCode: 1, Stderr: []byte("containerd: no")}
	if err := apply(); err == nil || !strings.Contains(err.Error(), "cannot read the new configuration") {
		t.Errorf("got %v", err)
	}
}
