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

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
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
	c, url := &http.Client{Transport: transport}, "https://"+r.metrics+"/metrics"
	stranger := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stranger"}}
	require.NoError(t, client.IgnoreAlreadyExists(r.Create(t.Context(), stranger)))
	var other authentication.TokenRequest
	require.NoError(t, r.SubResource("token").Create(t.Context(), stranger, &other))
	status, _ := request(t, c, url, "")
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = request(t, c, url, other.Status.Token)
	require.Equal(t, http.StatusForbidden, status)
	return scrape(t, c, url, token.Status.Token)
}

// families: every metric of ours is there, and no label has the name of an object.
func (r *rig) families(t *testing.T) {
	t.Helper()
	text := r.authorizedMetrics(t)
	var configs bootstrap.MachineBootstrapConfigList
	require.NoError(t, r.List(t.Context(), &configs))
	names := []string{"default", "light"}
	for i := range configs.Items {
		names = append(names, configs.Items[i].Name)
	}
	found := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^(machineadm_bootstrap_[a-z_]+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? [^ ]+$`).FindAllStringSubmatch(text, -1) {
		labels := []string{}
		for _, label := range regexp.MustCompile(`([a-z_]+)="([^"]*)"`).FindAllStringSubmatch(line[2], -1) {
			if label[1] == "le" {
				continue
			}
			labels = append(labels, label[1])
			require.NotContains(t, names, label[2], "%s", line[0])
		}
		found[line[1]] = labels
	}
	require.Equal(t, map[string][]string{
		"machineadm_bootstrap_data_age_seconds": {}, "machineadm_bootstrap_data_rendering_seconds": {}, "machineadm_bootstrap_events_dropped_total": {},
		"machineadm_bootstrap_documents_bytes":             {"type"},
		"machineadm_bootstrap_condition_transitions_total": {"reason", "status"},
		"machineadm_bootstrap_outcomes_total":              {"reason", "status"},
		"machineadm_bootstrap_tokens_total":                {"action"},
	}, found)
}

// scrape reads the metrics of the manager.
func scrape(t testing.TB, c *http.Client, url, token string) string {
	t.Helper()
	status, text := request(t, c, url, token)
	require.Equal(t, http.StatusOK, status, "%s", text)
	return text
}

func request(t testing.TB, c *http.Client, url, token string) (status int, body string) {
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
	return response.StatusCode, string(text)
}

// resynced waits until every config was reconciled so many times more.
func (r *rig) resynced(t *testing.T, times int) {
	t.Helper()
	began, configs := r.reconciled(t), len(r.ready(t, 3))
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
