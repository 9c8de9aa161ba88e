package stores

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/machineadm/machineadm/contract/pluginv1"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
)

const (
	namespace = "machines"
	// token is a bootstrap token: its secret part has 16 characters.
	token = "testen." + canary + "0123456789"
)

// apiServer is a kube-apiserver with RBAC and bootstrap tokens.
type apiServer struct {
	client.Client
	address, ca, pin string
}

func startAPIServer(t *testing.T) apiServer {
	t.Helper()
	limit := needs.Timeout(time.Minute)
	e := &envtest.Environment{ControlPlaneStartTimeout: limit, ControlPlaneStopTimeout: limit}
	e.ControlPlane.Etcd = &envtest.Etcd{Path: cluster.Program(t, "etcd")}
	server := e.ControlPlane.GetAPIServer()
	server.Path = cluster.Program(t, "kube-apiserver")
	server.Configure().Set("enable-bootstrap-token-auth", "true")
	config, err := e.Start()
	t.Cleanup(func() { require.NoError(t, e.Stop()) })
	require.NoError(t, err)
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	block, _ := pem.Decode(config.CAData)
	require.NotNil(t, block)
	ca, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return apiServer{
		c, strings.Trim(strings.TrimPrefix(config.Host, "https:"), "/"),
		string(config.CAData), fmt.Sprintf("sha256:%x", sha256.Sum256(ca.RawSubjectPublicKeyInfo)),
	}
}

// prepare makes a Secret, a bootstrap token, and the Role of the README, for that Secret and its ConfigMap alone.
func (s apiServer) prepare(t *testing.T) {
	t.Helper()
	named := func(name string) meta.ObjectMeta { return meta.ObjectMeta{Name: name, Namespace: namespace} }
	for _, o := range []client.Object{
		&core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}},
		&core.Secret{ObjectMeta: named("node-1"), Data: map[string][]byte{"value": []byte(stream)}},
		&core.Secret{ObjectMeta: named("node-2"), Data: map[string][]byte{"value": []byte(stream)}},
		&core.Secret{
			ObjectMeta: meta.ObjectMeta{Name: "bootstrap-token-" + token[:6], Namespace: "kube-system"}, Type: core.SecretTypeBootstrapToken,
			StringData: map[string]string{"token-id": token[:6], "token-secret": token[7:], "usage-bootstrap-authentication": "true"},
		},
		&core.ServiceAccount{ObjectMeta: named("node-1")},
		&rbac.Role{ObjectMeta: named("node-1"), Rules: []rbac.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"node-1"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"node-1-value.report"}, Verbs: []string{"create", "patch"}},
		}},
		&rbac.RoleBinding{
			ObjectMeta: named("node-1"), RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: "node-1"},
			Subjects: []rbac.Subject{
				{APIGroup: rbac.GroupName, Kind: rbac.UserKind, Name: "system:bootstrap:" + token[:6]},
				{Kind: rbac.ServiceAccountKind, Name: "node-1", Namespace: namespace},
			},
		},
	} {
		require.NoError(t, s.Create(t.Context(), o))
	}
}

func (s apiServer) uri(path string) string { return "kube://" + s.address + "/" + path }

// TestKube fetches from a real API server by a bootstrap token and by the token of a service account, and keeps reports there,
// with the rights of the README alone.
//
//machineadm:core
func TestKube(t *testing.T) {
	t.Parallel()
	s := startAPIServer(t)
	s.prepare(t)
	p := start(t, "plugins/remote-config/kube")
	config := map[string]any{"token": secret(token), "ca": s.ca, "caPins": []string{s.pin}}
	uri := s.uri(namespace + "/node-1/value")
	var stored core.Secret
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "node-1"}, &stored))
	fetched := func(config any) {
		t.Helper()
		o, e := p.fetch(uri, config)
		require.Nil(t, e)
		assert.Equal(t, stream, string(o.data))
		assert.Equal(t, stored.ResourceVersion, o.revision)
	}
	fetched(config)
	request := &authentication.TokenRequest{}
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "node-1", Namespace: namespace}}
	require.NoError(t, s.SubResource("token").Create(t.Context(), account, request))
	fetched(with(config, "token", secret(request.Status.Token)))

	for status, test := range map[string]struct {
		uri    string
		config any
	}{
		"401": {uri, with(config, "token", secret("testen.0"+token[8:]))},
		"403": {s.uri(namespace + "/node-2/value"), config},
		"404": {s.uri(namespace + "/node-1/absent"), config},
		"":    {uri, with(config, "caPins", []string{"sha256:" + strings.Repeat("00", 32)})},
	} {
		_, e := p.fetch(test.uri, test.config)
		refused(t, e, status)
	}
	_, e := p.fetch(uri, with(with(config, "caPins", nil), "ca", nil))
	refused(t, e, "")
	assert.Contains(t, e.Message, "unknown authority")
}

// TestKubeStores: objects are Secrets that the token of the machines gets and does not list, and reports are ConfigMaps beside them.
func TestKubeStores(t *testing.T) {
	t.Parallel()
	s := startAPIServer(t)
	require.NoError(t, s.Create(t.Context(), &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}))
	rules := map[string][]rbac.PolicyRule{ // of the README
		"manager": {
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "patch", "delete"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "delete"}},
		},
		"machines": {
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch"}},
		},
	}
	tokens := map[string]string{}
	for name, allowed := range rules {
		named := meta.ObjectMeta{Name: name, Namespace: namespace}
		for _, o := range []client.Object{
			&core.ServiceAccount{ObjectMeta: named}, &rbac.Role{ObjectMeta: named, Rules: allowed},
			&rbac.RoleBinding{
				ObjectMeta: named, RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: name},
				Subjects: []rbac.Subject{{Kind: rbac.ServiceAccountKind, Name: name, Namespace: namespace}},
			},
		} {
			require.NoError(t, s.Create(t.Context(), o))
		}
		request := &authentication.TokenRequest{}
		require.NoError(t, s.SubResource("token").Create(t.Context(), &core.ServiceAccount{ObjectMeta: named}, request))
		tokens[name] = request.Status.Token
	}
	p := start(t, "plugins/remote-config/kube")
	config := map[string]any{
		"token": secret(tokens["manager"]), "ca": s.ca, "caPins": []string{s.pin}, "read": map[string]any{"token": secret(tokens["machines"])},
	}
	at := storage(t, s.uri(namespace+"/of-"), "role", config)
	kept := p.keeps(p, at)
	left := core.SecretList{}
	require.NoError(t, s.List(t.Context(), &left, client.InNamespace(namespace)))
	assert.Empty(t, left.Items)
	assert.Equal(t, s.uri(namespace+"/of-"+stored+"/value"), kept.URI)
	assert.NotContains(t, string(kept.ProviderConfig), tokens["manager"])
	_, e := p.store(at, stream)
	require.Nil(t, e)
	var made core.Secret
	require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "of-" + stored}, &made))
	assert.Equal(t, stream, string(made.Data["value"]))
	assert.NotEmpty(t, made.Annotations["machineadm.cluster.x-k8s.io/expires"])
	_, e = p.store(storage(t, s.uri("absent/"), "role", config), stream)
	refused(t, e, "403")
	_, e = p.store(storage(t, at.URIPrefix, "role", with(config, "read", nil)), stream)
	require.NotNil(t, e)
	assert.Equal(t, "providerConfig.read", e.Violations[0].Field)
}

// TestKubeReport: the newest report stays, whatever the order, in a ConfigMap that the Role names; what others have added stays too.
func TestKubeReport(t *testing.T) {
	t.Parallel()
	s := startAPIServer(t)
	s.prepare(t)
	p := start(t, "plugins/remote-config/kube")
	config, uri := map[string]any{"token": secret(token), "ca": s.ca}, s.uri(namespace+"/node-1/value")
	stored := func() (m core.ConfigMap) {
		t.Helper()
		require.NoError(t, s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "node-1-value.report"}, &m))
		return m
	}
	require.Nil(t, p.report(uri, "", config, 2, `{"report": 2}`))
	assert.Equal(t, map[string]string{"report.json": `{"report": 2}`}, stored().Data)
	labelled := stored()
	labelled.Labels = map[string]string{"of": "others"}
	require.NoError(t, s.Update(t.Context(), &labelled))
	require.Nil(t, p.report(uri, "", config, 1, `{"report": 1}`))
	assert.Equal(t, `{"report": 2}`, stored().Data["report.json"])
	require.Nil(t, p.report(uri, s.uri(namespace+"/node-1-value.report/report.json"), config, 1<<63, `{"report": 3}`))
	assert.Equal(t, map[string]string{"report.json": `{"report": 3}`}, stored().Data)
	assert.Equal(t, map[string]string{"of": "others"}, stored().Labels)
	assert.Equal(t, map[string]string{"machineadm.cluster.x-k8s.io/sequence": "9223372036854775808"}, stored().Annotations)

	refused(t, p.report(s.uri(namespace+"/node-2/value"), "", config, 4, "{}"), "403")
	e := p.report(s.uri(namespace+"/node-1/My_Key"), "", config, 4, "{}")
	require.NotNil(t, e)
	assert.Equal(t, pluginv1.CodeUnsupported, e.Code)

	last := stored()
	require.NoError(t, s.Delete(t.Context(), &last))
	p.reportAll(uri, config, 12)
	assert.Equal(t, `{"report": 12}`, stored().Data["report.json"])
}
