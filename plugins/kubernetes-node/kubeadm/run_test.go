//go:build linux

package main

import (
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
