//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/member"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestSkew: kubeadm joins no control plane that the node does not fit. Version is the control plane's, and the document
// has v1.37.1.
func TestSkew(t *testing.T) {
	t.Parallel()
	for version, joins := range map[string]bool{
		"v1.36.9": false, "v1.37.0": true, "v1.40.0": true, "v1.41.0": false, "v2.37.1": false, "unreadable": true,
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(`{"gitVersion":"` + version + `"}`)) // the client notices
			}))
			t.Cleanup(server.Close)
			f := fixture(t, &critest.Runtime{})
			f.Commands.On("kubeadm join --config /dev/stdin", machine.Result{})
			p, err := plan(t.Context(), f.Machine, decode(t, strings.Replace(
				newIdentity(t, "node").worker(), "discovery: {", "discovery: {endpoint: '"+strings.TrimPrefix(server.URL, "https://")+"', ", 1)))
			require.NoError(t, err)
			_, err = apply(t, p)
			if joins {
				require.NoError(t, err)
				return
			}
			e := pluginv1.AsError(err)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.Equal(t, "the control plane is "+version+": a node must not be newer, nor more than three minor versions older", e.Message)
			require.Equal(t, "spec.kubernetesVersion", e.Violations[0].Field)
			for _, c := range f.Commands.Calls() {
				require.NotContains(t, c.Args, "join")
			}
		})
	}
}

// TestAskedCluster: what a plan cannot know of the cluster is asked right before the join, of a server that the hashes pin.
func TestAskedCluster(t *testing.T) {
	t.Parallel()
	const v4, v6 = "10.244.0.0/16", "2001:db8::/56"
	const ssl = "/etc/kubernetes/ssl"
	const on = "Filename\n/dev/sda2 partition 1 0 -2\n"
	for name, c := range map[string]struct{ pods, cluster, dir, kubelet, swaps, node, hash, says string }{
		"IPv4":                           {pods: v4},
		"both families":                  {pods: v4 + "," + v6, says: "net.ipv6.conf.all.forwarding is not 1"},
		"both families, one of the node": {pods: v4 + "," + v6, node: "ip: 192.0.2.1", says: "net.ipv6.conf.all.forwarding is not 1"},
		"swap":                           {pods: v4, swaps: on, says: "swap is on, and with failSwapOn: true"},
		"swap that is kept":              {pods: v4, swaps: on, node: "swap: keep", says: "swap is on, and with failSwapOn: true"},
		"swap that the cluster has":      {pods: v4, swaps: on, kubelet: "failSwapOn: false"},
		"another directory":              {pods: v4, cluster: "certificatesDir: " + ssl, says: "is /etc/kubernetes/pki, and the cluster has its certificates in " + ssl},
		"the directory of the cluster":   {pods: v4, cluster: "certificatesDir: " + ssl, dir: ssl},
		"another authority":              {pods: v6, hash: "sha256:" + strings.Repeat("0", 64)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var authority []byte
			var tokens atomic.Int32
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data := map[string]string{}
				switch _, name, _ := strings.Cut(r.URL.Path, "/configmaps/"); name {
				case "cluster-info":
					data["kubeconfig"] = "clusters: [{name: '', cluster: {certificate-authority-data: " + base64.StdEncoding.EncodeToString(authority) + "}}]\n"
				case "kubeadm-config":
					data["ClusterConfiguration"] = "networking: {podSubnet: '" + c.pods + "', serviceSubnet: 10.96.0.0/12}\n" + c.cluster
				case "kubelet-config":
					data["kubelet"] = "kind: KubeletConfiguration\n" + c.kubelet
				}
				if r.Header.Get("Authorization") == "Bearer "+token {
					tokens.Add(1)
				} else if data["kubeconfig"] == "" {
					w.WriteHeader(http.StatusUnauthorized)
				}
				_ = json.NewEncoder(w).Encode(map[string]any{"data": data}) // the client notices
			}))
			t.Cleanup(server.Close)
			other := newIdentity(t, "other")
			authority = append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), other.cert...)
			ca := newIdentity(t, "node")
			spec := strings.Replace(ca.worker(), "discovery: {", "node: {"+c.node+"}\ndiscovery: {endpoint: '"+strings.TrimPrefix(server.URL, "https://")+"', ", 1)
			if c.dir != "" {
				spec = strings.Replace(spec, "cluster: {", "cluster: {certificatesDir: "+c.dir+", ", 1)
			}
			f := fixture(t, &critest.Runtime{})
			f.WriteFiles(t, map[string]string{"/proc/swaps": c.swaps})
			f.Commands.On("kubeadm join --config /dev/stdin", machine.Result{})
			hash := cmp.Or(c.hash, member.CertificateHash(authority))
			p, err := plan(t.Context(), f.Machine, decode(t, strings.Replace(spec, ca.hash, hash, 1)))
			require.NoError(t, err)
			_, err = apply(t, p)
			require.Equal(t, c.hash == "", tokens.Load() == 2)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			e := pluginv1.AsError(err)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.Contains(t, e.Violations[0].Message, c.says)
			require.NotContains(t, f.Commands.Lines(), "kubeadm join --config /dev/stdin")
			p, err = plan(t.Context(), f.Machine, decode(t, strings.Replace(spec, ca.hash, hash, 1)))
			require.NoError(t, err)
			require.Equal(t, "kubeadm:join", ids(p), "nothing of the machine has changed")
		})
	}
}

// TestUnanswered: after a request without an answer kubeadm runs again, unless the machine may be a member of the cluster's etcd by then.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	ca := newIdentity(t, "node")
	for spec, want := range map[string]pluginv1.Code{
		ca.worker(): pluginv1.CodeRetry,
		strings.Replace(ca.worker(), "worker", "controlPlaneJoin", 1) + "certificateKey: {value: " + strings.Repeat("0123456789abcdef", 4) + "}\n": pluginv1.CodePrecondition,
	} {
		f := fixture(t, &critest.Runtime{})
		f.Commands.OnFunc("kubeadm join --config /dev/stdin", func(_ context.Context, c machine.Command) (machine.Result, error) {
			f.WriteFiles(t, map[string]string{"/etc/kubernetes/kubelet.conf": "incomplete", "/etc/kubernetes/bootstrap-kubelet.conf": token})
			c.Output("error: error execution phase kubelet-start: cannot get Node: net/http: TLS handshake timeout")
			return machine.Result{ExitCode: 1}, &machine.CommandError{Name: c.Name, ExitCode: 1}
		})
		p, err := plan(t.Context(), f.Machine, decode(t, spec))
		require.NoError(t, err)
		_, err = apply(t, p)
		e := pluginv1.AsError(err)
		require.Equal(t, want, e.Code, "%v", err)
		require.Contains(t, e.Message, "kubeadm join failed in the phase kubelet-start: ")
		p, err = plan(t.Context(), f.Machine, decode(t, spec))
		if want == pluginv1.CodePrecondition {
			require.ErrorContains(t, err, "could have become a member of the cluster's etcd")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "kubeadm:reset kubeadm:join", ids(p))
	}
}

// TestInterruptedElsewhere: what a killed join left is found and removed in the directory of certificates of the cluster.
func TestInterruptedElsewhere(t *testing.T) {
	t.Parallel()
	ca := newIdentity(t, "node")
	const join, left = "kubeadm join --config /dev/stdin", "/etc/kubernetes/ssl/ca.crt"
	spec := strings.Replace(ca.worker(), "cluster: {", "cluster: {certificatesDir: /etc/kubernetes/ssl, ", 1)
	f := fixture(t, &critest.Runtime{})
	f.Commands.OnFunc(join, func(context.Context, machine.Command) (machine.Result, error) {
		f.WriteFiles(t, map[string]string{left: ca.cert})
		panic("killed")
	})
	p, err := plan(t.Context(), f.Machine, decode(t, spec))
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = apply(t, p) })
	f.Commands.OnFunc("kubeadm reset --force --cert-dir /etc/kubernetes/ssl", func(context.Context, machine.Command) (machine.Result, error) {
		return machine.Result{}, f.Machine.FS.Remove(left)
	})
	installs(t, f, join, ca.joined())
	p, err = plan(t.Context(), f.Machine, decode(t, spec))
	require.NoError(t, err)
	require.Equal(t, "kubeadm:reset kubeadm:join", ids(p))
	_, err = apply(t, p)
	require.NoError(t, err)
	require.NotContains(t, machinetest.Tree(t, f.Root), left)
}
