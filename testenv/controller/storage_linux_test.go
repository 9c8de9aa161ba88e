package controller

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/testenv/management"
)

// storedSecret is a value in the documents that lie at the manager, and nowhere else.
const storedSecret = "canary-in-a-storage-4d1f"

// storage: documents lie at the manager's endpoint, a machine with its token gets them until it has a node, and what it reports becomes a
// condition.
func (r *rig) storage(t *testing.T) {
	address := r.server
	r.awaitData(t, "unserved")
	r.machine(t, "light", "served", referringTo("stored"))
	m := r.reference(t, "served")
	t.Run("documents", func(t *testing.T) { r.documents(t, m) })
	t.Run("strangers", func(t *testing.T) { r.strangers(t, m, address) })
	t.Run("reports", func(t *testing.T) { r.reports(t, m) })
	t.Run("second replica", func(t *testing.T) { r.replica(t, m, address) })
	t.Run("removed", func(t *testing.T) { r.removed(t, m) })
	t.Run("refused", r.unstored)
}

// unserved: a manager without an endpoint makes no data that refers to it.
func (r *rig) unserved(t *testing.T) {
	r.put(t, secret("stored-password", map[string]string{"value": storedSecret}))
	r.storing(t, "stored", map[string]any{"report": map[string]any{"deadline": "1h"}})
	r.machine(t, "light", "unserved", referringTo("stored"))
	r.condition(t, bootstrap.ConditionReady, "False", "start it with --server-address and --server-url", "unserved")
}

// serve starts the manager again, with an endpoint.
func (r *rig) serve(t *testing.T, arguments ...string) {
	t.Helper()
	r.manager.Stop(t)
	r.server = r.Address(t)
	r.run(t, append(arguments, "--server-address="+r.server, "--server-url=https://"+r.server)...)
}

// storing makes a storage.
func (r *rig) storing(t *testing.T, name string, spec map[string]any) {
	t.Helper()
	spec["server"] = map[string]any{}
	r.put(t, made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapStorage, name, map[string]any{"spec": spec}))
}

// referringTo is the spec of a config whose documents have a storage.
func referringTo(storage string) map[string]any {
	return map[string]any{
		"storageRef": map[string]any{"apiGroup": bootstrap.Group, "kind": bootstrap.KindMachineBootstrapStorage, "name": storage},
		"format":     map[string]any{"type": bootstrap.FormatPlain},
		"documents": []any{map[string]any{"apiVersion": strangers, "kind": "Noop", "name": "last", "spec": map[string]any{
			"provider": "test", "token": valueFrom("stored-password"),
		}}},
	}
}

// served is what a machine has of its documents.
type served struct {
	name   string
	spec   contract.RemoteConfigSpec
	bearer string
	client *http.Client
}

// reference reads the RemoteConfig in the data of a config, as a machine does.
func (r *rig) reference(t *testing.T, name string) *served {
	t.Helper()
	return read(t, name, r.awaitData(t, name))
}

func read(t testing.TB, name string, data *corev1.Secret) *served {
	t.Helper()
	found, err := document.Decode("", strings.NewReader(string(data.Data["value"])))
	require.NoError(t, err)
	require.Empty(t, found.Errors)
	require.Len(t, found.Documents, 1)
	text, err := found.Documents[0].JSON()
	require.NoError(t, err)
	var remote contract.RemoteConfig
	require.Empty(t, document.Unmarshal(text, &remote))
	var settings struct {
		CA     string
		Bearer struct{ Value string }
	}
	require.NoError(t, json.Unmarshal(remote.Spec.ProviderConfig, &settings))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM([]byte(settings.CA)))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	return &served{name, remote.Spec, settings.Bearer.Value, &http.Client{Transport: transport}}
}

// ask sends a request, and returns the status and the body of the answer.
func (m *served) ask(t testing.TB, method, url, bearer string, sequence uint64, body string) (status int, answer string) {
	t.Helper()
	a, err := m.send(t, method, url, bearer, sequence, body)
	require.NoError(t, err)
	text, err := io.ReadAll(a.Body)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	return a.StatusCode, string(text)
}

func (m *served) send(t testing.TB, method, url, bearer string, sequence uint64, body string) (*http.Response, error) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("Authorization", "Bearer "+bearer)
	q.Header.Set("Machineadm-Sequence", strconv.FormatUint(sequence, 10))
	return m.client.Do(q)
}

func (m *served) fetch(t testing.TB) (status int, answer string) {
	t.Helper()
	return m.ask(t, http.MethodGet, m.spec.URI, m.bearer, 0, "")
}

// documents: the bootstrap data has no value of a Secret. The endpoint has the documents, with the digest that the data names, and the status
// says that they were fetched.
func (r *rig) documents(t *testing.T, m *served) {
	data := r.data(t, r.namespace, m.name)
	require.NotContains(t, string(data.Data["value"]), storedSecret)
	require.Contains(t, string(data.Data["documents"]), storedSecret)
	for name, value := range data.Annotations {
		require.NotContains(t, value, m.bearer, name)
	}
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "Unknown", "the machine is not provisioned", m.name)
	status, stream := m.fetch(t)
	require.Equal(t, http.StatusOK, status, stream)
	require.Equal(t, string(data.Data["documents"]), stream)
	sum := sha256.Sum256([]byte(stream))
	require.Equal(t, hex.EncodeToString(sum[:]), m.spec.SHA256)
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "Unknown", "the machine fetched its documents at ", m.name)
	r.condition(t, bootstrap.ConditionReady, "True", "", m.name)
}

// strangers: every other token gets one answer, whether the config exists or not, and none of them costs a request to the API server.
func (r *rig) strangers(t *testing.T, m *served, address string) {
	other := r.reference(t, "unserved")
	mark := len(r.Audit(t))
	data, sent := "https://"+address+"/v1/data/", "https://"+address+"/v1/report/"
	guess := strings.Repeat("A", len(m.bearer))
	for _, c := range [][3]string{
		{http.MethodGet, data + "default/served", guess},
		{http.MethodGet, data + "default/served", other.bearer},
		{http.MethodGet, data + "default/unserved", m.bearer},
		{http.MethodGet, data + "default/absent", m.bearer},
		{http.MethodGet, data + "absent/served", m.bearer},
		{http.MethodGet, data + "kube-system/extension-apiserver-authentication", m.bearer},
		{http.MethodPost, sent + "default/served", other.bearer},
		{http.MethodPost, sent + "default/unserved", m.bearer},
		{http.MethodPost, sent + "default/absent", guess},
	} {
		status, answer := m.ask(t, c[0], c[1], c[2], 1, body(t, report.RunSucceeded, ""))
		require.Equal(t, http.StatusForbidden, status, "%v: %s", c, answer)
		require.Equal(t, "denied\n", answer)
	}
	for _, q := range r.Audit(t)[mark:] {
		require.False(t, q.User.Name == account && q.Verb == "get" && strings.HasSuffix(q.Object.Name, dataSuffix), "%s", q.URI)
	}
}

// body is a report of a run.
func body(t testing.TB, outcome report.Outcome, message string) string {
	t.Helper()
	text, err := json.Marshal(reportOf(outcome, message))
	require.NoError(t, err)
	return string(text)
}

func reportOf(outcome report.Outcome, message string) report.Report {
	r := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "run", Outcome: outcome,
		Documents: []report.Document{{Kind: "Noop", Name: "last", Outcome: report.Changed}},
	}
	if message != "" {
		r.ExitCode = report.ExitFailed
		r.Errors = []report.Error{{Code: "Precondition", Document: "Noop/last", Message: message, Hint: "do it"}}
		r.Documents[0].Outcome = report.Failed
	}
	return r
}

// reports: the newest report of the machine becomes a condition with the first line of machineadm status. One that is older, that was sent
// before, or that is none changes nothing. A report of success ends a failure.
func (r *rig) reports(t *testing.T, m *served) {
	send := func(sequence uint64, body string, want int) {
		t.Helper()
		status, answer := m.ask(t, http.MethodPost, m.spec.Report.URI, m.bearer, sequence, body)
		require.Equal(t, want, status, answer)
	}
	says := func(sequence int64, status, text string) {
		t.Helper()
		var c bootstrap.MachineBootstrapConfig
		require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: m.name}, &c))
		require.Equal(t, sequence, c.Status.Bootstrap.Sequence)
		require.NotNil(t, c.Status.Bootstrap.FetchedAt)
		r.condition(t, bootstrap.ConditionBootstrapSucceeded, metav1.ConditionStatus(status), text, m.name)
	}
	send(10, body(t, report.RunFailed, "no route"), http.StatusNoContent)
	line := words.Headline(reportOf(report.RunFailed, "no route"), false)
	says(10, "False", line)
	r.condition(t, bootstrap.ConditionReady, "False", "BootstrapSucceeded: "+line, m.name)
	send(10, body(t, report.RunSucceeded, ""), http.StatusNoContent)
	send(9, body(t, report.RunSucceeded, ""), http.StatusNoContent)
	for _, wrong := range []string{"", "{", "{}", "[]", body(t, "Fine", ""), body(t, report.RunFailed, "x") + "x"} {
		send(11, wrong, http.StatusBadRequest)
	}
	send(0, body(t, report.RunSucceeded, ""), http.StatusBadRequest)
	send(12, strings.Repeat("x", report.MaxBytes+1), http.StatusRequestEntityTooLarge)
	says(10, "False", line)
	send(13, body(t, report.RunRebootRequired, ""), http.StatusNoContent)
	says(13, "Unknown", "Reboot required")
	r.condition(t, bootstrap.ConditionReady, "True", "", m.name)
	send(14, body(t, report.RunSucceeded, ""), http.StatusNoContent)
	says(14, "True", "Succeeded: 1 document")
	var all eventsv1.EventList
	management.Await(t, r, soon, &all, func() error {
		count := map[string]int{}
		for i := range all.Items {
			if strings.HasPrefix(all.Items[i].Note, bootstrap.ConditionBootstrapSucceeded) {
				count[all.Items[i].Type+" "+all.Items[i].Reason]++
			}
		}
		if count["Warning Precondition"] != 1 || count["Normal Succeeded"] != 1 {
			return fmt.Errorf("the events are %v", count)
		}
		return nil
	}, client.InNamespace(r.namespace), client.MatchingFields{"regarding.name": m.name})
}

// replica: a manager that is not the leader serves the same documents, with a certificate of the same authority, and takes reports.
func (r *rig) replica(t *testing.T, m *served, address string) {
	leader, second := r.manager, r.Address(t)
	health, metrics := r.health, r.metrics
	r.run(t, append(inputsFlags(), "--server-address="+second, "--server-url=https://"+address)...)
	follower := r.manager
	r.manager, r.health, r.metrics = leader, health, metrics
	status, stream := m.ask(t, http.MethodGet, strings.Replace(m.spec.URI, address, second, 1), m.bearer, 0, "")
	require.Equal(t, http.StatusOK, status, stream)
	status, answer := m.ask(t, http.MethodPost, strings.Replace(m.spec.Report.URI, address, second, 1), m.bearer, 20, body(t, report.RunFailed, "by the second"))
	require.Equal(t, http.StatusNoContent, status, answer)
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "False", "by the second", m.name)
	follower.Stop(t)
}

// removed: when the machine has a node, its documents are gone from the Secret, and nobody gets them. Its reports still count.
func (r *rig) removed(t *testing.T, m *served) {
	machine := &clusterv1.Machine{}
	machine.Namespace, machine.Name = r.namespace, m.name
	require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"nodeRef":{"name":"served"}}}`)))
	var secrets corev1.SecretList
	management.Await(t, r, soon, &secrets, func() error {
		if len(secrets.Items) != 1 || len(secrets.Items[0].Data["documents"]) > 0 {
			return fmt.Errorf("the documents of %s are there", m.name)
		}
		return nil
	}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": m.name + dataSuffix})
	require.NotEmpty(t, secrets.Items[0].Data["value"])
	require.NotContains(t, string(secrets.Items[0].Data["value"]), storedSecret)
	status, answer := m.fetch(t)
	require.Equal(t, http.StatusForbidden, status, answer)
	status, answer = m.ask(t, http.MethodPost, m.spec.Report.URI, m.bearer, 30, body(t, report.RunSucceeded, ""))
	require.Equal(t, http.StatusNoContent, status, answer)
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "True", "Succeeded", m.name)
}

// unstored: what cannot be stored says so, with the remedy, and the data is made when it is corrected.
func (r *rig) unstored(t *testing.T) {
	change := func(name string, of func(map[string]any)) map[string]any {
		spec := referringTo(name)
		of(spec)
		return spec
	}
	target := map[string]any{"apiVersion": contract.APIVersion, "kind": contract.KindReportTarget, "name": "home", "spec": map[string]any{
		"provider": "http", "uri": "https://reports.example.com/x",
	}}
	withTarget := func(spec map[string]any) {
		documents, ok := spec["documents"].([]any)
		require.True(t, ok)
		spec["documents"] = append(documents, target)
	}
	r.storing(t, "quiet", map[string]any{"report": map[string]any{"disabled": true}})
	for name, c := range map[string]struct {
		spec   map[string]any
		status string
		text   string
	}{
		"absent-storage": {referringTo("later"), "Unknown", "spec.storageRef: MachineBootstrapStorage later does not exist"},
		"other-kind": {change("stored", func(spec map[string]any) {
			spec["storageRef"] = map[string]any{"apiGroup": bootstrap.Group, "kind": "Vault", "name": "v"}
		}), "False", "must be a MachineBootstrapStorage or of another API group, and not Vault of bootstrap.cluster.x-k8s.io"},
		"on-talos":   {change("stored", func(spec map[string]any) { spec["format"] = map[string]any{"type": bootstrap.FormatTalos} }), "False", "the format talos has no storage"},
		"two-places": {change("stored", withTarget), "False", "remove the document, or set report.disabled of the storage"},
	} {
		r.machine(t, "light", name, c.spec)
		r.condition(t, bootstrap.ConditionReady, metav1.ConditionStatus(c.status), c.text, name)
	}
	r.storing(t, "later", map[string]any{})
	r.awaitData(t, "absent-storage")

	// Without reports by the storage the document names the destination, and is in the bootstrap data, where it counts.
	r.machine(t, "light", "quiet", change("quiet", withTarget))
	value := string(r.awaitData(t, "quiet").Data["value"])
	require.Less(t, strings.Index(value, "kind: ReportTarget"), strings.Index(value, "kind: RemoteConfig"))
	require.Contains(t, value, "disabled: true")
	for _, wrong := range []map[string]any{{"expiry": "soon"}, {"report": map[string]any{"deadline": "1h", "disabled": true}}, {"report": map[string]any{"deadline": "-1h"}}} {
		wrong["server"] = map[string]any{}
		o := made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapStorage, "wrong", map[string]any{"spec": wrong})
		o.SetNamespace(r.namespace)
		require.Error(t, r.Create(t.Context(), o), "%v", wrong)
	}
}
