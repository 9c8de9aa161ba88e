package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/installer/release"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

// released is a release of the real programs in a directory, and its public key. Each one has a key of its own.
func released(t *testing.T) (dir, key string) {
	t.Helper()
	needs.Tool(t, "zstd")
	dir = t.TempDir()
	public, private, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	text, err := private.MarshalText()
	require.NoError(t, err)
	r := release.Release{
		Version: "v0.1.0", Time: time.Unix(1767225600, 0), Names: []string{"machineadm", "machineadm-sysctl-plugin-procfs"},
		Binaries: dir, Share: t.TempDir(), Platform: []release.Platform{{OS: "linux", Arch: runtime.GOARCH}},
		Kinds: []string{manifest.KindBinary, manifest.KindArchive}, Out: filepath.Join(dir, "out"), Key: filepath.Join(dir, "key"), Quick: true,
	}
	require.NoError(t, os.WriteFile(r.Key, text, 0o600))
	programs := filepath.Join(dir, "linux-"+runtime.GOARCH)
	require.NoError(t, os.Mkdir(programs, 0o755))
	require.NoError(t, tools.Products(t.Context(), programs, map[string]string{
		r.Names[0]: "host/cmd/machineadm", r.Names[1]: "plugins/sysctl/procfs",
	}))
	require.NoError(t, r.Make(t.Context(), t.Output()))
	return r.Out, public.String()
}

// site is the configuration of nginx: a release that is not the one of the user data, and this one behind a redirect, compressed.
const site = `server {
	listen 8080;
	root /srv/www;
	gzip on;
	gzip_types *;
	gzip_min_length 1;
	location /moved/ { rewrite ^/moved/(.*)$ http://$http_host/right/$1 redirect; }
}
`

// TestUserData boots a machine that has nothing but the example for cloud-init. Of its two servers the first one has the release
// of another publisher: the program is not the pinned one, and the manifest is not signed by the key. The machine asks no other
// one than its mirror.
//
//machineadm:core
func TestUserData(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	right, key := released(t)
	wrong, _ := released(t)
	file := File("v0.1.0", "linux", runtime.GOARCH)
	require.NoError(t, os.WriteFile(filepath.Join(wrong, file), []byte(program), 0o644)) //nolint:gosec // read by nginx
	built, err := os.ReadFile(filepath.Join(right, file))
	require.NoError(t, err)
	network := nodes.NewNetwork(t, "node", "mirror", nodes.Gateway)
	options := nodes.Options{
		Suite: nodes.Trixie, Network: network,
		Layers: append(nodes.EgressLayers(nodes.Trixie), nodes.WebServer),
	}
	mirror := options
	mirror.Hostname, mirror.Prepare = "mirror", func(root string) error {
		www := filepath.Join(root, "srv/www")
		return errors.Join(
			os.MkdirAll(filepath.Join(www, "right"), 0o755), os.MkdirAll(filepath.Join(www, "wrong"), 0o755),
			os.CopyFS(filepath.Join(www, "right/v0.1.0"), os.DirFS(right)), os.CopyFS(filepath.Join(www, "wrong/v0.1.0"), os.DirFS(wrong)),
			os.WriteFile(filepath.Join(root, "etc/nginx/conf.d/release.conf"), []byte(site), 0o644), //nolint:gosec // read by nginx
		)
	}
	nodes.Boot(t, mirror)
	server := network.Address("mirror").String()
	options.Prepare = nodes.InOrder(
		nodes.CountEgress(network), nodes.CloudInitSeed(userDataFor(t, server+":8080", key, digest(built))),
	)
	n := nodes.Boot(t, options)
	log := n.MustExec(t, "cat", "/var/log/cloud-init-output.log").Stdout
	require.Contains(t, n.MustExec(t, "cloud-init", "status", "--long").Stdout, "status: done", "%s", log)
	assert.Contains(t, log, "machineadm-fetch: http://"+server+":8080/wrong/v0.1.0/"+file+" has another SHA-256")
	assert.Contains(t, log, "which is not trusted")
	said := func(argv ...string) string { return strings.TrimSpace(n.MustExec(t, argv...).Stdout) }
	assert.Equal(t, "releases/v0.1.0", said("readlink", "/opt/machineadm/current"))
	assert.Equal(t, "600 root", said("stat", "-c", "%a %U", "/run/machineadm/node.yaml"))
	assert.Equal(t, "8191", said("cat", "/proc/sys/net/core/somaxconn"))
	n.MustExec(t, "test", "-s", "/run/cluster-api/bootstrap-success.complete")
	n.MustExec(t, "cloud-init", "schema", "--config-file", "/var/lib/cloud/instance/user-data.txt")
	assert.Equal(t, "tcp . "+server+" . 8080", n.Egress(t))
	assert.Equal(t, "/opt/bin/machineadm", said("find", "/opt/bin", "-type", "f"), "nothing else is left")
}

// userDataFor is the example with the server, the key and the digest of the test, and a stream that a container can apply.
func userDataFor(t *testing.T, server, key, program string) string {
	t.Helper()
	data, err := os.ReadFile(example("cloud-init.yaml"))
	require.NoError(t, err)
	const stream = `      apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
      kind: Sysctl
      metadata: {name: node}
      spec: {parameters: {net.core.somaxconn: 8191}}
`
	text := string(data)
	at, end := strings.Index(text, "content: |\n")+len("content: |\n"), strings.Index(text, "  - path: /run/machineadm-fetch.sh")
	text = text[:at] + stream + text[end:]
	text = regexp.MustCompile(`RWS[0-9A-Za-z+/]+`).ReplaceAllString(text, key)
	return strings.NewReplacer(
		"https://releases.example.com/machineadm", "http://"+server+"/wrong",
		"http://mirror.example.com/machineadm", "http://"+server+"/moved",
		exampleHead(Shell).AMD64, program, exampleHead(Shell).ARM64, program,
	).Replace(text)
}
