package controller

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// authorizedMetrics reads the metrics as a service account that may, over a connection that is not authenticated: the manager signs
// its own certificate.
func (r *rig) authorizedMetrics(t *testing.T) string {
	t.Helper()
	reader := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "metrics"}}
	require.NoError(t, client.IgnoreAlreadyExists(r.Create(t.Context(), reader)))
	r.put(t,
		made("rbac.authorization.k8s.io/v1", "ClusterRole", "metrics", map[string]any{"rules": []any{map[string]any{
			"nonResourceURLs": []any{"/metrics"}, "verbs": []any{"get"},
		}}}),
		made("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "metrics", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": "default", "name": "metrics"}},
		}))
	var token authentication.TokenRequest
	require.NoError(t, r.SubResource("token").Create(t.Context(), reader, &token))
	// The probes answer before the metrics do, whose server makes itself a certificate first.
	require.Eventually(t, func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", r.metrics)
		return err == nil && conn.Close() == nil
	}, soon, soon/1000)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	return scrape(t, &http.Client{Transport: transport}, "https://"+r.metrics+"/metrics", token.Status.Token)
}

// scrape reads the metrics of the manager.
func scrape(t testing.TB, c *http.Client, url, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
	return string(text)
}

// resynced waits until every config was reconciled so many times more.
func (r *rig) resynced(t *testing.T, times int) {
	t.Helper()
	began, configs := r.reconciled(t), len(r.ready(t, 2))
	require.Eventually(t, func() bool { return r.reconciled(t) >= began+times*configs }, limit, soon/100)
}

// reconciled is how many reconciliations the manager has ended.
func (r *rig) reconciled(t testing.TB) int {
	t.Helper()
	sum := 0
	text := scrape(t, http.DefaultClient, "http://"+r.metrics+"/metrics", "")
	for _, found := range ended.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		sum += n
	}
	return sum
}

var ended = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{controller="machinebootstrapconfig",.*\} ([0-9]+)$`)
