package loader

//machineadm:tier controller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/remotes/docker"
	dockerconfig "github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/pelletier/go-toml/v2"
)

// TestHosts has containerd's parser read each hosts.toml, and looks for the effect of each of its keys: the parser drops a
// key that it does not support without a word.
func TestHosts(t *testing.T) {
	t.Parallel()
	certificate, key := pair(t)
	read := 0
	for _, g := range goldens(t, "hosts.toml") {
		t.Run(g.name, func(t *testing.T) {
			root := t.TempDir()
			for name, content := range g.files {
				switch content {
				case "(CERTIFICATE)\n":
					content = certificate
				case "(PRIVATE KEY)\n":
					content = key
				}
				write(t, filepath.Join(root, name), content)
			}
			for name, content := range g.files {
				if path.Base(name) == "hosts.toml" {
					read++
					hosts(t, filepath.Dir(filepath.Join(root, name)), content)
				}
			}
		})
	}
	if read < 40 {
		t.Errorf("only %d files", read)
	}
}

func hosts(t *testing.T, dir, content string) {
	t.Helper()
	options := dockerconfig.HostOptions{HostDir: func(string) (string, error) { return dir, nil }}
	got, err := dockerconfig.ConfigureHosts(t.Context(), options)("registry.test")
	if err != nil {
		t.Fatalf("%s: %v\n%s", dir, err, content)
	}
	var file map[string]any
	if err := toml.Unmarshal([]byte(content), &file); err != nil {
		t.Fatal(err)
	}
	mirrors, _ := file["host"].(map[string]any)
	delete(file, "host")
	if len(got) != len(mirrors)+1 {
		t.Fatalf("%s: %d endpoints of %d", dir, len(got), len(mirrors)+1)
	}
	server, _ := file["server"].(string)
	delete(file, "server")
	endpoint(t, server, file, got[len(got)-1])
	for address, table := range mirrors {
		keys, _ := table.(map[string]any)
		at := slices.IndexFunc(got[:len(got)-1], func(h docker.RegistryHost) bool { return isAt(h, address) })
		if at < 0 {
			t.Errorf("%s: %s is dropped", dir, address)
			continue
		}
		endpoint(t, address, keys, got[at])
	}
}

// isAt returns whether the endpoint is that of an address. One without TLS to whose port TLS may speak is tried with it.
func isAt(h docker.RegistryHost, address string) bool {
	u, err := url.Parse(address)
	return err == nil && h.Host == u.Host && strings.HasPrefix(h.Path, strings.TrimSuffix(u.Path, "/"))
}

// endpoint checks that each key of an endpoint has its effect.
func endpoint(t *testing.T, address string, keys map[string]any, got docker.RegistryHost) {
	t.Helper()
	if address != "" && !isAt(got, address) {
		t.Errorf("%s is %s://%s%s", address, got.Scheme, got.Host, got.Path)
	}
	settings := &tls.Config{}
	if transport, ok := got.Client.Transport.(*http.Transport); ok {
		settings = transport.TLSClientConfig
	}
	for key, value := range keys {
		effective := false
		switch key {
		case "capabilities":
			effective = got.Capabilities == capabilities(value)
		case "ca":
			effective = settings.RootCAs != nil
		case "client":
			pairs, _ := value.([]any)
			effective = len(pairs) > 0 && len(settings.Certificates) == len(pairs)
		case "skip_verify":
			effective = settings.InsecureSkipVerify == value
		case "override_path":
			effective = value == !strings.HasSuffix(got.Path, "/v2")
		case "dial_timeout":
			_, err := time.ParseDuration(value.(string)) //nolint:forcetypeassert // the parser has read it
			effective = err == nil
		case "header":
			effective = reflect.DeepEqual(got.Header, header(value))
		}
		if !effective {
			t.Errorf("%s: the key %s has no effect", address, key)
		}
	}
}

func capabilities(value any) (all docker.HostCapabilities) {
	names, _ := value.([]any)
	for _, name := range names {
		all |= map[any]docker.HostCapabilities{
			"pull": docker.HostCapabilityPull, "resolve": docker.HostCapabilityResolve,
			"push": docker.HostCapabilityPush, "referrers": docker.HostCapabilityReferrers,
		}[name]
	}
	return all
}

func header(value any) http.Header {
	out := http.Header{}
	table, _ := value.(map[string]any)
	for name, v := range table {
		switch v := v.(type) {
		case string:
			out[name] = []string{v}
		case []any:
			for _, one := range v {
				out[name] = append(out[name], one.(string)) //nolint:forcetypeassert // the parser has read it
			}
		}
	}
	return out
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pair returns a certificate and its key.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}
