package stores

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/objectstores"
	"github.com/machineadm/machineadm/testenv/sources"
)

// TestChains: a booted node applies the stream of a reference that is encrypted, and refers to another place. Each server of this
// package is there at least once; and none after the reboot. No credential is in what machineadm prints or keeps.
func TestChains(t *testing.T) {
	program := azuriteProgram(t)
	t.Parallel()
	kube, vault, blobs := startAPIServer(t), startVault(t, transitAlone), startAzurite(t, program)
	kube.prepare(t)
	vault.call(http.MethodPost, "sys/mounts/transit", map[string]any{"type": "transit"})
	vault.call(http.MethodPost, "transit/keys/machines", map[string]any{})
	vault.call(http.MethodPost, "sys/policies/acl/decrypt", map[string]any{"policy": `path "transit/decrypt/machines" { capabilities = ["update"] }`})
	decrypting := vault.call(http.MethodPost, "auth/token/create", map[string]any{"policies": []string{"decrypt"}, "no_default_policy": true})["client_token"]
	store := objectstores.StartGCS(t, nil)
	gcs, kms, a := startGoogle(t, "devstorage.read_write", store), startGoogle(t, "cloudkms", nil), authority.New(t)
	login, keys := serve(t, a, entra("https://vault.azure.net")), serve(t, a, keyVault(t))
	n := sources.BootNode(t, "remote-config/kube", "remote-config/gcs", "remote-config/azblob",
		"encrypted-config/vault", "encrypted-config/gcpkms", "encrypted-config/azurekeyvault")

	places := map[string]func(data []byte) []byte{
		"kube": func(data []byte) []byte {
			var kept core.Secret
			require.NoError(t, kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "node-1"}, &kept))
			kept.Data["value"] = data
			require.NoError(t, kube.Update(t.Context(), &kept))
			return sources.Remote(t, "kube", "kube", kube.uri(namespace+"/node-1/value"), map[string]any{"token": secret(token), "ca": kube.ca})
		},
		"gcs": func(data []byte) []byte {
			store.Put(t, "worker.yaml", data)
			return sources.Remote(t, "gcs", "gcs", "gs://"+store.Bucket+"/worker.yaml", gcs.config(t))
		},
		"azblob": func(data []byte) []byte {
			blobs.put("worker.yaml", string(data))
			shared := map[string]any{"account": account, "key": secret(accountKey)}
			return sources.Remote(t, "azblob", "azblob", blobs.at+"/worker.yaml", map[string]any{"ca": string(blobs.authority.Certificate), "sharedKey": shared})
		},
	}
	seals := map[string]func(plain []byte) []byte{
		"vault": func(plain []byte) []byte {
			config := map[string]any{"ca": vault.ca, "token": map[string]any{"value": decrypting}}
			return n.Encrypt("vault", "vault", vault.address+"/transit/machines", config, with(config, "token", secret(vault.root)), plain)
		},
		"gcpkms": func(plain []byte) []byte {
			return n.Encrypt("gcpkms", "gcpkms", kmsKey, kms.config(t), kms.config(t), plain)
		},
		"azurekeyvault": func(plain []byte) []byte {
			config := map[string]any{"ca": string(a.Certificate), "clientSecret": application(login, canary+"~secret&")}
			return n.Encrypt("azurekeyvault", "azurekeyvault", strings.TrimPrefix(keys, "https://")+"/keys/machines", config, config, plain)
		},
	}
	n.Serve = func() {
		for _, server := range []string{kube.address, vault.address, blobs.at, gcs.at, kms.at, login, keys} {
			address, _, _ := strings.Cut(strings.TrimPrefix(server, "https://"), "/")
			n.Forward(t, address)
		}
	}
	for _, tree := range []string{"kube > vault > gcs", "gcs > gcpkms > azblob", "azblob > azurekeyvault > kube"} {
		t.Run(tree, func(t *testing.T) {
			chain := strings.Split(tree, " > ")
			n.Converges(t, tree, func(stream []byte) []byte {
				return places[chain[0]](seals[chain[1]](places[chain[2]](stream)))
			})
		})
	}
	for name, place := range places {
		t.Run("conformance/"+name, func(t *testing.T) {
			sources.Conforms(t, "remote-config/"+name, place([]byte(sources.Stream)), fmt.Sprintf("%x", sha256.Sum256([]byte(sources.Stream))))
		})
	}
	for name, seal := range seals {
		t.Run("conformance/"+name, func(t *testing.T) { sources.Conforms(t, "encrypted-config/"+name, seal([]byte(sources.Stream)), "") })
	}
	n.Kept(t, canary, vault.root, accountKey, fmt.Sprint(decrypting))
	assert.Contains(t, string(store.Get(t, "worker.yaml.report.json")), `"Succeeded"`)
}
