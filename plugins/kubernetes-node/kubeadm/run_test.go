//go:build linux

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestSkew: kubeadm joins no control plane that the node does not fit. Version is that of the control plane, and the document
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
