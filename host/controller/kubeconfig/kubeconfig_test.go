package kubeconfig

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	capi "sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const canary = "c4n4ry"

// TestContained: only what is in the kubeconfig authenticates the manager. Without the check, a path is read.
func TestContained(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { got = append(got, q.Header.Get("Authorization")) }))
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(canary), 0o600))
	for name, c := range map[string]struct {
		change func(*api.Cluster, *api.AuthInfo)
		want   string // the error, empty if it is supported
	}{
		"data alone":     {func(_ *api.Cluster, _ *api.AuthInfo) {}, ""},
		"token":          {func(_ *api.Cluster, u *api.AuthInfo) { u.Token = "theirs" }, ""},
		"password":       {func(_ *api.Cluster, u *api.AuthInfo) { u.Username, u.Password = "u", "p" }, ""},
		"server name":    {func(c *api.Cluster, _ *api.AuthInfo) { c.TLSServerName = "example.com" }, ""},
		"tokenFile":      {func(_ *api.Cluster, u *api.AuthInfo) { u.TokenFile = file }, "remove tokenFile"},
		"token and file": {func(_ *api.Cluster, u *api.AuthInfo) { u.Token, u.TokenFile = "theirs", file }, "remove tokenFile"},
		"exec": {func(_ *api.Cluster, u *api.AuthInfo) {
			u.Exec = &api.ExecConfig{Command: "/bin/sh", APIVersion: "client.authentication.k8s.io/v1"}
		}, "remove exec"},
		"auth-provider":    {func(_ *api.Cluster, u *api.AuthInfo) { u.AuthProvider = &api.AuthProviderConfig{Name: "oidc"} }, "remove auth-provider"},
		"authority's file": {func(c *api.Cluster, _ *api.AuthInfo) { c.CertificateAuthorityData, c.CertificateAuthority = nil, file }, "remove certificate-authority"},
		"files":            {func(_ *api.Cluster, u *api.AuthInfo) { u.ClientCertificate, u.ClientKey = file, file }, "remove client-certificate, client-key"},
		"impersonation":    {func(_ *api.Cluster, u *api.AuthInfo) { u.Impersonate, u.ImpersonateGroups = "a", []string{"b"} }, "remove as, as-groups"},
		"not verified":     {func(c *api.Cluster, _ *api.AuthInfo) { c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true }, "remove insecure-skip-tls-verify"},
		"plain http":       {func(c *api.Cluster, _ *api.AuthInfo) { c.Server = strings.Replace(c.Server, "https", "http", 1) }, "no https URL"},
		"user in server": {func(c *api.Cluster, _ *api.AuthInfo) {
			c.Server = strings.Replace(c.Server, "https://", "https://a:b@", 1)
		}, "no https URL"},
		"no server": {func(c *api.Cluster, _ *api.AuthInfo) { c.Server = "" }, "no https URL"},
	} {
		given := api.NewConfig()
		given.Clusters["c"], given.AuthInfos["u"] = &api.Cluster{Server: server.URL, CertificateAuthorityData: ca}, &api.AuthInfo{}
		given.Contexts["x"], given.CurrentContext = &api.Context{Cluster: "c", AuthInfo: "u"}, "x"
		c.change(given.Clusters["c"], given.AuthInfos["u"])
		// Entries that are not current do not matter, and are gone.
		given.AuthInfos["other"] = &api.AuthInfo{TokenFile: file}
		text, err := clientcmd.Write(*given)
		require.NoError(t, err)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-kubeconfig"}, Data: map[string][]byte{"value": text}}
		reader := fake.NewClientBuilder().WithObjects(secret).Build()
		key := client.ObjectKey{Namespace: "n", Name: "c"}

		before, err := capi.FromSecret(t.Context(), reader, key) // as clustercache does
		require.NoError(t, err, name)
		after, err := capi.FromSecret(t.Context(), Reader{reader}, key)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, name)
			require.NotContains(t, err.Error(), file, name)
			if strings.HasPrefix(name, "token") { // what happens today
				require.Contains(t, send(t, before, &got), "Bearer "+canary, name)
			}
			continue
		}
		require.NoError(t, err, name)
		require.NotContains(t, string(after), file, name)
		if name == "token" {
			require.Equal(t, []string{"Bearer theirs"}, send(t, after, &got))
		}
	}
}

// send makes a request with a kubeconfig, and returns what the server was sent.
func send(t *testing.T, text []byte, got *[]string) []string {
	t.Helper()
	*got = nil
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	require.NoError(t, err)
	c, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host, nil)
	require.NoError(t, err)
	response, err := c.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return *got
}

// TestNotKubeconfig: what is not a kubeconfig.
func TestNotKubeconfig(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{}", "c4n4ry: [", "#cloud-config\nruncmd: [c4n4ry]\n", `{"apiVersion":"v1","kind":"Config","current-context":"c4n4ry"}`, "current-context: x\ncontexts: [{name: x}]", "apiVersion: v2\nkind: Config"} {
		_, err := Contained([]byte(text))
		require.Error(t, err, text)
		require.NotContains(t, err.Error(), canary)
	}
}

func FuzzContained(f *testing.F) {
	f.Add([]byte("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://a'}}]\nusers: [{name: u, user: {token: t, tokenFile: /etc/passwd}}]"))
	f.Add([]byte("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://a'}}]\nusers: [{name: u, user: {exec: {command: a, apiVersion: b}}}]"))
	f.Add([]byte("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://a', certificate-authority: /etc/passwd}}]\nusers: [{name: u, user: {token: t}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		made, err := Contained(text)
		if err != nil {
			return
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(made)
		if err != nil {
			return
		}
		if config.BearerTokenFile != "" || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" || config.ExecProvider != nil ||
			config.AuthProvider != nil || config.Insecure || config.Impersonate.UserName != "" {
			t.Fatalf("%q", text)
		}
	})
}
