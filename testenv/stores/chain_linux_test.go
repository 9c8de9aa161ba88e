package stores

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/objectstores"
	"github.com/machineadm/machineadm/testenv/tools"
)

// machineadm runs the command of the checkout, with the plugins of this package.
type machineadm struct {
	t         *testing.T
	dir, said string // what it has printed
}

func newMachineadm(t *testing.T) *machineadm {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), filepath.Join(dir, "plugins"), map[string]string{
		"machineadm-remote-configuration-provider-kube":       "plugins/remote-config/kube",
		"machineadm-remote-configuration-provider-gcs":        "plugins/remote-config/gcs",
		"machineadm-remote-configuration-provider-azblob":     "plugins/remote-config/azblob",
		"machineadm-plugin-encryption-provider-vault":         "plugins/encrypted-config/vault",
		"machineadm-plugin-encryption-provider-azurekeyvault": "plugins/encrypted-config/azurekeyvault",
		"machineadm-sysctl-plugin-procfs":                     "plugins/sysctl/procfs",
	}))
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"machineadm": "host/cmd/machineadm"}))
	return &machineadm{t: t, dir: dir}
}

func (m *machineadm) run(arguments ...string) string {
	m.t.Helper()
	c := exec.CommandContext(m.t.Context(), filepath.Join(m.dir, "machineadm"),
		append(arguments, "--plugin-dir", filepath.Join(m.dir, "plugins"), "--log-level", "debug")...)
	var out, problem bytes.Buffer
	c.Stdout, c.Stderr = &out, &problem
	require.NoError(m.t, c.Run(), "%v: %s%s", arguments, &out, &problem)
	m.said += out.String() + problem.String()
	return out.String()
}

func (m *machineadm) file(name string, data []byte) string {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	require.NoError(m.t, os.WriteFile(path, data, 0o600))
	return path
}

// remote is a RemoteConfig, as JSON.
func (m *machineadm) remote(name, provider, uri string, config any) []byte {
	m.t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": "RemoteConfig", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"provider": provider, "uri": uri, "providerConfig": config},
	})
	require.NoError(m.t, err)
	return data
}

// encrypt returns an EncryptedConfig.
func (m *machineadm) encrypt(name, provider, key string, config any, plain []byte) []byte {
	m.t.Helper()
	data, err := json.Marshal(config)
	require.NoError(m.t, err)
	return []byte(m.run("encrypt", "--path", m.file(name, plain), "--name", name, "--provider", provider, "--key", key,
		"--provider-config", m.file(name+".config", data)))
}

// TestChain applies what a chain of five documents stands for: a Secret of Kubernetes, encrypted by Vault, names an object of Google Cloud
// Storage, encrypted by Azure Key Vault, which names a blob of Azure. No credential is in what machineadm prints or keeps.
func TestChain(t *testing.T) {
	program := azuriteProgram(t)
	t.Parallel()
	kube, vault, blobs := startAPIServer(t), startVault(t), startAzurite(t, program)
	kube.prepare(t)
	store := objectstores.StartGCS(t, nil)
	gcs, a := startGoogle(t, "devstorage.read_write", store), authority.New(t)
	app := func(audience string) map[string]any {
		return map[string]any{"ca": string(a.Certificate), "clientSecret": application(serve(t, a, entra(audience)), canary+"~secret&")}
	}
	m := newMachineadm(t)

	blobs.put("worker.yaml", stream)
	shared := map[string]any{"ca": string(blobs.authority.Certificate), "sharedKey": map[string]any{"account": account, "key": secret(accountKey)}}
	blob := m.remote("blob", "azblob", blobs.at+"/worker.yaml", shared)
	keys := strings.TrimPrefix(serve(t, a, keyVault(t)), "https://")
	store.Put(t, "worker.yaml", m.encrypt("wrapped", "azurekeyvault", keys+"/keys/machines", app("https://vault.azure.net"), blob))
	object := m.remote("object", "gcs", "gs://"+store.Bucket+"/worker.yaml", gcs.config(t))
	vault.call(http.MethodPost, "sys/mounts/transit", map[string]any{"type": "transit"})
	vault.call(http.MethodPost, "transit/keys/machines", map[string]any{})
	sealed := m.encrypt("sealed", "vault", vault.address+"/transit/machines", map[string]any{"ca": vault.ca, "token": secret(vault.root)}, object)
	var kept core.Secret
	require.NoError(t, kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "node-1"}, &kept))
	kept.Data["value"] = sealed
	require.NoError(t, kube.Update(t.Context(), &kept))
	outer := m.file("outer", m.remote("outer", "kube", kube.uri(namespace+"/node-1/value"), map[string]any{"token": secret(token), "ca": kube.ca}))

	m.said = "" // encrypt prints documents with the given providerConfig
	assert.Regexp(t, `(?s)RemoteConfig/outer.*EncryptedConfig/sealed.*RemoteConfig/object.*EncryptedConfig/wrapped.*RemoteConfig/blob.*Sysctl/node`,
		m.run("resolve", "--path", outer))
	root, state, run := filepath.Join(m.dir, "root"), filepath.Join(m.dir, "state"), filepath.Join(m.dir, "run")
	require.NoError(t, os.Mkdir(root, 0o755)) //nolint:gosec // as an image is
	m.run("apply", "--path", outer, "--root", root, "--state-dir", state, "--run-dir", run)
	written := m.said
	for _, dir := range []string{root, state, run} {
		require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			written += string(data)
			return err
		}))
	}
	assert.Contains(t, written, "net.core.somaxconn")
	for _, credential := range []string{canary, vault.root, accountKey} {
		assert.NotContains(t, written, credential)
	}
}
