package aws

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/sources"
)

// TestChains: a booted node applies the stream of a reference that is encrypted, and refers to another place. Each service is there
// at least once, and none after the reboot. The role of the instance reads and decrypts; the keys that encrypt are not in the document.
// Neither secrets nor values are in what machineadm prints or keeps.
func TestChains(t *testing.T) {
	s, own, u := store(t)
	r, node, encrypter, admin := serving(t)
	n := sources.BootNode(t, "remote-config/s3", "remote-config/ssm", "remote-config/secretsmanager", "encrypted-config/awskms")
	metadata := &Metadata{Region: region, Role: "machineadm-node", ID: node.ID, Secret: node.Secret, Token: node.Token}
	n.Serve = func() {
		n.Forward(t, strings.TrimPrefix(own.endpoint, "https://"), strings.TrimPrefix(r.endpoint, "https://"))
		m := &http.Server{Handler: metadata, ReadHeaderTimeout: time.Minute}
		l := n.Listen(t, "[fd00:ec2::254]:80") // of an instance without IPv4
		go func() { _ = m.Serve(l) }()         // ends with the listener
	}
	permit(t, r.endpoint)
	n.MustExec(t, "sh", "-c", `mkdir -p /etc/machineadm && umask 022 && printf %s "$0" >/etc/machineadm/endpoints.yaml`, string(permitted(r.endpoint)))
	role := map[string]any{"endpoint": r.endpoint, "ca": string(r.ca.Certificate)}
	keys := r.config(encrypter, nil)
	delete(keys, "region")
	put := func(arguments ...string) {
		out, err := r.aws(t, admin, append(arguments, "--endpoint-url", r.endpoint)...)
		require.NoError(t, err, out+r.log())
	}
	places := map[string]func(data []byte) []byte{
		"s3": func(data []byte) []byte {
			s.Put(t, "nodes/worker.yaml", data)
			return sources.Remote(t, "s3", "s3", "s3://"+s.Bucket+"/nodes/worker.yaml", own.config(u, nil))
		},
		"ssm": func(data []byte) []byte {
			put("ssm", "put-parameter", "--overwrite", "--name", "/nodes/chain", "--value", string(data))
			return sources.Remote(t, "ssm", "ssm", "ssm:///nodes/chain", role)
		},
		"secretsmanager": func(data []byte) []byte {
			put("secretsmanager", "put-secret-value", "--secret-id", "nodes/worker-1", "--secret-string", string(data))
			return sources.Remote(t, "secretsmanager", "secretsmanager", "secretsmanager://nodes/worker-1", role)
		},
	}
	for _, tree := range []string{"s3 > awskms > ssm", "ssm > awskms > secretsmanager", "secretsmanager > awskms > s3"} {
		t.Run(tree, func(t *testing.T) {
			chain := strings.Split(tree, " > ")
			n.Converges(t, tree, func(stream []byte) []byte {
				sealed := n.Encrypt("awskms", "awskms", alias, role, keys, places[chain[2]](stream))
				assert.Contains(t, string(sealed), "@"+kmsKey)
				assert.NotContains(t, string(sealed), encrypter.ID)
				return places[chain[0]](sealed)
			})
		})
	}
	serveMetadata(t, metadata, "169.254.169.254:80")
	for name, place := range places {
		t.Run("conformance/"+name, func(t *testing.T) {
			sources.Conforms(t, "remote-config/"+name, place([]byte(sources.Stream)), fmt.Sprintf("%x", sha256.Sum256([]byte(sources.Stream))))
		})
	}
	sealed := n.Encrypt("awskms", "awskms", alias, role, keys, []byte(sources.Stream))
	t.Run("conformance/awskms", func(t *testing.T) { sources.Conforms(t, "encrypted-config/awskms", sealed, "") })
	n.Kept(t, "c4n4ry", u.Secret, encrypter.Secret)
}
