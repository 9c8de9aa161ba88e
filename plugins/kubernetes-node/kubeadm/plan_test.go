//go:build linux

package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestCreate: the changes are in order, kubeadm gets everything on standard input, and afterwards nothing is left to do and
// nothing is run to find that out.
func TestCreate(t *testing.T) {
	t.Parallel()
	needs.Root(t) // the owner of a file is set
	ca := newIdentity(t, "node")
	f := fixture(t, &critest.Runtime{})
	doc := decode(t, creator+"discovery: {token: {value: "+token+"}}\ncertificateKey: {value: "+certificateKey+"}\nprofiles: [cis-1.11]\n"+
		"certificates: {ca: {certificate: \""+strings.ReplaceAll(ca.cert, "\n", `\n`)+"\", key: {value: \""+strings.ReplaceAll(ca.key, "\n", `\n`)+"\"}}}\n"+
		"files:\n- {path: /etc/audit.yaml, content: audit}\n- {path: /etc/after, content: after, when: afterKubernetes}\n"+
		"staticPods: [{name: proxy, manifest: '{apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: a, image: b}]}}'}]\n"+
		"patches: [{target: etcd, patch: 'spec: {}'}]\n")
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Equal(t, "file:/etc/audit.yaml file:/etc/kubernetes/manifests/proxy.yaml file:/etc/kubernetes/pki/ca.crt "+
		"file:/etc/kubernetes/pki/ca.key kubeadm:init modes file:/etc/after", ids(p))
	var before string
	f.Commands.OnFunc("kubeadm init --config /dev/stdin --upload-certs", func(_ context.Context, c machine.Command) (machine.Result, error) {
		assert.Contains(t, string(c.Stdin), token)
		assert.Contains(t, string(c.Stdin), "kind: ClusterConfiguration")
		before = machinetest.Tree(t, f.Root)
		begun, err := os.ReadDir(filepath.Dir(f.Machine.State.Path("kubeadm")))
		assert.NoError(t, err)
		assert.Len(t, begun, 1)
		f.WriteFiles(t, ca.created())
		return machine.Result{}, nil
	})
	_, err = apply(t, p)
	require.NoError(t, err)
	require.Contains(t, before, "-rw-r--r-- /etc/audit.yaml")
	require.Contains(t, before, "-rw------- /etc/kubernetes/pki/ca.key")
	require.Contains(t, before, "drwx------ /run/machineadm-kubernetes-node/patches")
	require.NotContains(t, before, "/etc/after")
	require.NotContains(t, machinetest.Tree(t, f.Root), "machineadm-kubernetes-node")
	require.NotContains(t, strings.Join(f.Commands.Lines(), "\n"), "c4n4ry")
	require.NotContains(t, strings.Join(f.Commands.Lines(), "\n"), certificateKey)

	calls := len(f.Commands.Calls())
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Empty(t, ids(p))
	require.Len(t, f.Commands.Calls(), calls)
	require.Empty(t, p.Warnings)
	changed := doc
	changed.Spec.CertificateKey, changed.Spec.Files = nil, nil
	p, err = plan(t.Context(), f.Machine, changed)
	require.NoError(t, err)
	require.Empty(t, p.Warnings, "credentials end, and files stay managed")
	changed.Spec.KubernetesVersion = "v1.37.2"
	p, err = plan(t.Context(), f.Machine, changed)
	require.NoError(t, err)
	require.Empty(t, ids(p))
	require.Contains(t, p.Warnings[0].Message, "the document has changed since it made this machine a node")
	require.NoError(t, f.Machine.FS.Remove("/etc/audit.yaml"))
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Equal(t, "file:/etc/audit.yaml", ids(p))
}

// TestJoinWithAKubeconfig: the file with the credentials is there only while kubeadm runs.
func TestJoinWithAKubeconfig(t *testing.T) {
	t.Parallel()
	ca := newIdentity(t, "node")
	f := fixture(t, &critest.Runtime{})
	const file = "/run/machineadm-kubernetes-node/discovery.conf"
	f.WriteFiles(t, map[string]string{"/run/machineadm-kubernetes-node/patches/old": "c4n4ry of a killed run"})
	doc := decode(t, "role: worker\nkubernetesVersion: v1.37.1\ncluster: {endpoint: api.example.com:6443}\ndiscovery: {kubeconfig: {value: \""+
		strings.NewReplacer("\n", `\n`).Replace(ca.kubeconfig("c4n4ry"))+"\"}}\n")
	f.Commands.OnFunc("kubeadm join --config /dev/stdin", func(context.Context, machine.Command) (machine.Result, error) {
		info, err := f.Machine.FS.Stat(file)
		assert.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode.Perm())
		f.WriteFiles(t, ca.joined())
		return machine.Result{}, nil
	})
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	_, err = apply(t, p)
	require.NoError(t, err)
	require.NotContains(t, machinetest.Tree(t, f.Root), "machineadm-kubernetes-node")
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Empty(t, ids(p))
}

// TestFailure: the error explains itself with the containers and the kubelet, without secrets, and no Retry.
func TestFailure(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{Exited: map[string]string{"kube-apiserver-node": "/var/log/pods/api.log"}})
	f.WriteFiles(t, map[string]string{"/var/log/pods/api.log": "unknown flag: --bogus\nBearer eyJhbGciOi.c4n4ry.c4n4ry\n"})
	doc := decode(t, creator+"discovery: {token: {value: "+token+"}}\n")
	f.Commands.OnFunc("kubeadm init --config /dev/stdin", func(context.Context, machine.Command) (machine.Result, error) {
		f.WriteFiles(t, map[string]string{"/etc/kubernetes/manifests/kube-apiserver.yaml": "", "/etc/kubernetes/manifests/etcd.yaml": ""})
		return machine.Result{ExitCode: 1, Stdout: []byte("[certs] Generating\n[bootstrap-token] Using token: " + token + "\n"), Stderr: []byte(
			"error: error execution phase wait-control-plane: could not bootstrap the admin user in file admin.conf: connection refused\n")}, nil
	})
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	shown, err := apply(t, p)
	e := pluginv1.AsError(err)
	require.Equal(t, pluginv1.CodePrecondition, e.Code)
	require.Equal(t, "kubeadm init failed in the phase wait-control-plane: the control plane does not become healthy: "+
		"etcd has no container, kube-apiserver ends with exit code 1", e.Message)
	require.Equal(t, map[string]string{
		"command": "init", "duration": "0s", "exitCode": "1", "kubeadmVersion": "v1.37.1", "kubernetesVersion": "v1.37.1", "phase": "wait-control-plane",
	}, e.Facts)
	require.True(t, strings.HasPrefix(e.Detail, "cause: kube-apiserver: Bearer [redacted]\n"), e.Detail) // the last line
	require.Contains(t, e.Detail, "unknown flag: --bogus")
	require.Contains(t, e.Detail, "kubelet: token [redacted] refused")
	require.NotContains(t, e.Error()+e.Detail+shown.String(), "c4n4ry")
	require.Equal(t, "creating certificates\ncreating the bootstrap token", shown.String())
	// Without data of etcd no machine can have joined: the plan says that it removes what is left.
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Equal(t, "kubeadm:reset kubeadm:init", ids(p))
	f.WriteFiles(t, map[string]string{"/var/lib/etcd/member/wal": ""})
	_, err = plan(t.Context(), f.Machine, doc)
	require.ErrorContains(t, err, "unknown whether other nodes have joined")
}

// TestNoContainer: without any container the kubelet is the cause.
func TestNoContainer(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{})
	f.Commands.OnFunc("kubeadm init --config /dev/stdin", func(context.Context, machine.Command) (machine.Result, error) {
		f.WriteFiles(t, map[string]string{"/etc/kubernetes/manifests/kube-apiserver.yaml": "", "/etc/kubernetes/manifests/etcd.yaml": ""})
		return machine.Result{ExitCode: 1, Stderr: []byte("error: error execution phase wait-control-plane: connection refused\n")}, nil
	})
	p, err := plan(t.Context(), f.Machine, decode(t, creator))
	require.NoError(t, err)
	_, err = apply(t, p)
	require.ErrorContains(t, err, "the control plane does not become healthy: the kubelet has started no container of it")
}

// TestRestarted: a container that always ends explains the failure also at a moment at which it runs; one that ended once does not.
func TestRestarted(t *testing.T) {
	t.Parallel()
	exited, files := map[string]string{}, map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-scheduler"} {
		exited[name+"-node"] = "/var/log/pods/" + name
		files["/var/log/pods/"+name], files["/etc/kubernetes/manifests/"+name+".yaml"] = "the end of "+name+"\n", ""
	}
	f := fixture(t, &critest.Runtime{Exited: exited, Restarted: map[string]time.Time{
		"etcd-node": time.Now().Add(-time.Minute), "kube-apiserver-node": time.Now(),
	}})
	f.Commands.OnFunc("kubeadm init --config /dev/stdin", func(context.Context, machine.Command) (machine.Result, error) {
		f.WriteFiles(t, files)
		return machine.Result{ExitCode: 1, Stderr: []byte("error: error execution phase wait-control-plane: connection refused\n")}, nil
	})
	p, err := plan(t.Context(), f.Machine, decode(t, creator))
	require.NoError(t, err)
	_, err = apply(t, p)
	require.ErrorContains(t, err, "healthy: kube-apiserver ends with exit code 1, kube-scheduler ends with exit code 1")
	detail := pluginv1.AsError(err).Detail
	require.True(t, strings.HasPrefix(detail, "cause: kube-apiserver: the end of kube-apiserver\n"), detail)
	require.Contains(t, detail, "kube-apiserver: running, exit code 0, attempt 5")
	require.NotContains(t, detail, "the end of etcd")
}

// TestRefusedInPreflight: kubeadm that changes nothing leaves no intent, so that a corrected document is not refused.
func TestRefusedInPreflight(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{})
	ca := newIdentity(t, "node")
	text, err := os.ReadFile("internal/outcome/testdata/1.36/join-token-unknown.txt")
	require.NoError(t, err)
	f.Commands.On("kubeadm join --config /dev/stdin", machine.Result{ExitCode: 1, Stderr: text})
	p, err := plan(t.Context(), f.Machine, decode(t, ca.worker()))
	require.NoError(t, err)
	_, err = apply(t, p)
	require.ErrorContains(t, err, "the cluster does not know the bootstrap token, or it has expired")
	_, err = f.Machine.State.Load("kubeadm")
	require.ErrorIs(t, err, os.ErrNotExist)
	installs(t, f, "kubeadm join --config /dev/stdin", ca.joined())
	p, err = plan(t.Context(), f.Machine, decode(t, strings.Replace(ca.worker(), "example.com", "example.org", 1)))
	require.NoError(t, err)
	_, err = apply(t, p)
	require.NoError(t, err)
}

// TestInterrupted: what a killed run left is removed, files of the document that this takes away are written again, and a
// node that is one already is only finished.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	needs.Root(t) // the owner of a file is set
	ca := newIdentity(t, "node")
	killed := errors.New("killed")
	interrupt := func(f *machinetest.Fixture, line, spec string, files map[string]string) {
		f.Commands.OnFunc(line, func(context.Context, machine.Command) (machine.Result, error) {
			f.WriteFiles(t, files)
			panic(killed)
		})
		p, err := plan(t.Context(), f.Machine, decode(t, spec))
		require.NoError(t, err)
		require.PanicsWithError(t, "killed", func() { _, _ = apply(t, p) })
	}

	f := fixture(t, &critest.Runtime{})
	spec := ca.worker() + "patches: [{target: kubeletconfiguration, patch: 'maxPods: 3'}]\n"
	interrupt(f, "kubeadm join --config /dev/stdin", spec, map[string]string{"/etc/kubernetes/bootstrap-kubelet.conf": token})
	installs(t, f, reset, nil)
	f.Commands.OnFunc(reset, func(context.Context, machine.Command) (machine.Result, error) {
		return machine.Result{}, f.Machine.FS.Remove("/etc/kubernetes/bootstrap-kubelet.conf")
	})
	installs(t, f, "kubeadm join --config /dev/stdin", ca.joined())
	p, err := plan(t.Context(), f.Machine, decode(t, spec))
	require.NoError(t, err)
	require.Equal(t, "kubeadm:reset kubeadm:join", ids(p))
	_, err = apply(t, p)
	require.NoError(t, err)

	f = fixture(t, &critest.Runtime{})
	files := ca.joined()
	files["/etc/kubernetes/bootstrap-kubelet.conf"] = token
	interrupt(f, "kubeadm join --config /dev/stdin", spec, files)
	p, err = plan(t.Context(), f.Machine, decode(t, strings.Replace(spec, "maxPods: 3", "maxPods: 4", 1)))
	require.NoError(t, err)
	require.Equal(t, "kubeadm:reset kubeadm:join", ids(p), "the kubelet would keep the settings of the interrupted run")
	p, err = plan(t.Context(), f.Machine, decode(t, spec))
	require.NoError(t, err)
	require.Equal(t, "kubeadm:finish", ids(p))
	var status atomic.Int32
	status.Store(http.StatusInternalServerError)
	f.WriteFiles(t, kubelet(t, &status))
	impatient, err := plan(t.Context(), f.Machine, decode(t, spec+"timeouts: {kubelet: 1ms}\n"))
	require.NoError(t, err)
	_, err = apply(t, impatient)
	require.ErrorContains(t, err, "the kubelet does not become healthy")
	require.Contains(t, pluginv1.AsError(err).Detail, "journalctl --unit kubelet:")
	require.NotContains(t, pluginv1.AsError(err).Detail, token)
	require.NotContains(t, machinetest.Tree(t, f.Root), "machineadm-kubernetes-node")
	status.Store(http.StatusOK)
	_, err = apply(t, p)
	require.NoError(t, err)
	require.NotContains(t, machinetest.Tree(t, f.Root), "bootstrap-kubelet.conf")
	require.NotContains(t, machinetest.Tree(t, f.Root), "machineadm-kubernetes-node")

	f = fixture(t, &critest.Runtime{})
	spec = creator + "staticPods: [{name: proxy, manifest: '{apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: a, image: b}]}}'}]\n"
	interrupt(f, "kubeadm init --config /dev/stdin", spec, map[string]string{"/etc/kubernetes/admin.conf": "", "/etc/kubernetes/pki/ca.key": ""})
	f.Commands.OnFunc(reset, func(context.Context, machine.Command) (machine.Result, error) {
		return machine.Result{}, errors.Join(f.Machine.FS.Remove("/etc/kubernetes/admin.conf"), f.Machine.FS.Remove("/etc/kubernetes/pki/ca.key"),
			f.Machine.FS.Remove("/etc/kubernetes/manifests/proxy.yaml"))
	})
	installs(t, f, "kubeadm init --config /dev/stdin", ca.created())
	p, err = plan(t.Context(), f.Machine, decode(t, spec))
	require.NoError(t, err)
	require.Equal(t, "kubeadm:reset file:/etc/kubernetes/manifests/proxy.yaml kubeadm:init", ids(p))
	_, err = apply(t, p)
	require.NoError(t, err)
	require.Contains(t, machinetest.Tree(t, f.Root), "-rw------- /etc/kubernetes/manifests/proxy.yaml")

	f = fixture(t, &critest.Runtime{})
	interrupt(f, "kubeadm init --config /dev/stdin", creator, ca.created())
	installs(t, f, "kubeadm init phase addon all --config /dev/stdin", nil)
	p, err = plan(t.Context(), f.Machine, decode(t, creator))
	require.NoError(t, err)
	require.Equal(t, "kubeadm:finish", ids(p))
	_, err = apply(t, p)
	require.NoError(t, err)
	p, err = plan(t.Context(), f.Machine, decode(t, creator))
	require.NoError(t, err)
	require.Empty(t, ids(p))
}

// kubelet serves the health of a kubelet, and returns its configuration.
func kubelet(t *testing.T, status *atomic.Int32) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/healthz", r.URL.Path)
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	require.NoError(t, err)
	return map[string]string{"/var/lib/kubelet/config.yaml": "healthzBindAddress: 0.0.0.0\nhealthzPort: " + port + "\n"}
}

// TestStop leaves the intent, and its error is the one by which the library sees that the change was stopped.
func TestStop(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{})
	ca := newIdentity(t, "node")
	ctx, stop := context.WithCancelCause(t.Context())
	f.Commands.OnFunc("kubeadm join --config /dev/stdin", func(ctx context.Context, c machine.Command) (machine.Result, error) {
		assert.Equal(t, grace, c.Grace)
		f.WriteFiles(t, map[string]string{"/etc/kubernetes/bootstrap-kubelet.conf": token})
		stop(sdk.ErrStopped)
		<-ctx.Done()
		return machine.Result{ExitCode: -1}, &machine.CommandError{Name: c.Name, ExitCode: -1, Signal: "TERM", Err: ctx.Err()}
	})
	p, err := plan(ctx, f.Machine, decode(t, ca.worker()))
	require.NoError(t, err)
	require.True(t, p.Changes[0].Interruptible && p.Changes[0].NeedsLive)
	require.ErrorIs(t, p.Changes[0].Do(ctx, &recorder{}), context.Canceled)
	_, err = f.Machine.State.Load("kubeadm")
	require.NoError(t, err)
}

// TestCrash ends a run before each of its effects.
func TestCrash(t *testing.T) {
	t.Parallel()
	ca := newIdentity(t, "node")
	const both = "patches: [{target: kubeletconfiguration, patch: 'maxPods: 3'}]\nfiles: [{path: /etc/a, content: a}]\nprofiles: [cis-1.11]\n"
	const pod = "staticPods: [{name: proxy, manifest: '{apiVersion: v1, kind: Pod, metadata: {name: proxy}, spec: {containers: [{name: a, image: b}]}}'}]\n"
	for name, spec := range map[string]string{"join": ca.worker() + both, "init": creator + both + pod} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var status atomic.Int32
			status.Store(http.StatusOK)
			healthy := kubelet(t, &status)
			machinetest.Crash(t, func() *machinetest.Fixture {
				f := fixture(t, &critest.Runtime{})
				f.WriteFiles(t, healthy)
				installs(t, f, "kubeadm join --config /dev/stdin", ca.joined())
				installs(t, f, "kubeadm init --config /dev/stdin", ca.created())
				installs(t, f, "kubeadm init phase addon all --config /dev/stdin", nil)
				return f
			}, func(ctx context.Context, m machine.Machine) (sdk.Plan, error) { return plan(ctx, m, decode(t, spec)) })
		})
	}
}

// TestTwoNodes: two documents never agree, because a machine is one node.
func TestTwoNodes(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{})
	doc := decode(t, creator)
	_, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	doc.Metadata.Name = "other"
	_, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	claims := slices.DeleteFunc(f.Claims(), func(c machine.Claim) bool { return !strings.HasPrefix(c.ID, "node:kubernetes") })
	require.Len(t, claims, 2)
	require.Equal(t, claims[0].ID, claims[1].ID)
	require.NotEqual(t, claims[0].Value, claims[1].Value)
}

// TestTimeouts: the waits of kubeadm end before the time limit of the document.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{})
	doc := decode(t, creator+"timeouts: {kubelet: 9s}\n")
	doc.Metadata.Timeout = "2m"
	f.Commands.OnFunc("kubeadm init --config /dev/stdin", func(_ context.Context, c machine.Command) (machine.Result, error) {
		assert.Contains(t, string(c.Stdin), `kubeletHealthCheck: "9s"`)
		assert.Contains(t, string(c.Stdin), `controlPlaneComponentHealthCheck: "40s"`)
		return machine.Result{}, nil
	})
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	_, err = apply(t, p)
	require.NoError(t, err)
	// A release that cannot express them keeps its own, unless the document has them.
	f = fixture(t, &critest.Runtime{})
	f.Commands.On(askVersion, machine.Result{Stdout: []byte(`{"clientVersion": {"gitVersion": "v1.30.14"}}`)})
	f.Commands.On("kubelet --version", machine.Result{Stdout: []byte("Kubernetes v1.30.14\n")})
	older := decode(t, strings.Replace(creator, "v1.37.1", "v1.30.14", 1))
	older.Metadata.Timeout = "2m"
	_, err = plan(t.Context(), f.Machine, older)
	require.NoError(t, err)
	older.Spec.Timeouts = &v1alpha1.NodeTimeouts{Kubelet: "9s"}
	_, err = plan(t.Context(), f.Machine, older)
	require.ErrorContains(t, err, "spec.timeouts.kubelet")
}
