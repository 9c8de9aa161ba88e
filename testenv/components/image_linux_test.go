package components_test

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/components"
	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	archive = "/root/manager.tar"
	account = "/run/account"
	log     = "/root/manager.log"
	limit   = 4 * time.Minute
)

// TestImage: the containerd of Debian 12 and that of 13 import the image of a release under its name and digest. In that of Debian 12,
// with Debian's runc, the program runs as the Deployment says; the nodes of Debian 13 can run no containers.
func TestImage(t *testing.T) {
	needs.Tier(t, needs.Cluster)
	built, into := t.TempDir(), t.TempDir()
	require.NoError(t, tools.Products(t.Context(), built, map[string]string{"manager": "host/cmd/manager"}))
	program := filepath.Join(built, "manager")
	r := components.Release{Version: "v0.1.0", Image: "registry.example/machineadm/manager"}
	require.NoError(t, r.Write(t.Context(), t.Output(), into, map[string]string{"amd64": program, "arm64": program}))
	packed := filepath.Join(into, "manager-v0.1.0.tar")
	files := unpack(t, packed)
	for v, start := range map[containerd.Version]func(testing.TB, containerd.Version) *containerd.Daemon{
		containerd.V16: containerd.StartRunning,
		containerd.V17: func(t testing.TB, v containerd.Version) *containerd.Daemon { return containerd.Start(t, v) },
	} {
		t.Run(string(v), func(t *testing.T) {
			n := node{start(t, v)}
			require.NoError(t, n.CopyIn(t.Context(), packed, archive, 0o600))
			n.ctr(t, "images", "import", archive)
			n.sameDigests(t, r.Reference(), files)
			if v == containerd.V16 {
				n.help(t, r.Reference())
				n.runs(t, r.Reference(), deployment(t, r))
			}
		})
	}
}

// descriptor refers to a blob of the archive.
type descriptor struct {
	Digest   string
	Platform struct{ Architecture string }
}

// document is an index, or a manifest.
type document struct {
	Manifests []descriptor
	Config    descriptor
}

// unpack reads the small files of an archive, by name.
func unpack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	files := map[string][]byte{}
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if err != nil {
			require.NotEmpty(t, files, "%v", err)
			return files
		}
		if h.Size < 1<<16 {
			files[h.Name], err = io.ReadAll(r)
			require.NoError(t, err)
		}
	}
}

// deployment is the pod of the release.
func deployment(t *testing.T, r components.Release) appsv1.Deployment {
	t.Helper()
	files, err := r.Files(t.Context(), t.Output())
	require.NoError(t, err)
	for text := range strings.SplitSeq(string(files[components.File]), "\n---\n") {
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(text), &d); err == nil && d.Kind == "Deployment" {
			return d
		}
	}
	t.Fatal("the release has no Deployment")
	return appsv1.Deployment{}
}

type node struct{ *containerd.Daemon }

// ctr runs the client of containerd on the images of the kubelet.
func (n node) ctr(t *testing.T, arguments ...string) string {
	t.Helper()
	return n.MustExec(t, append([]string{"ctr", "--namespace=k8s.io"}, arguments...)...).Stdout
}

// sameDigests: the engine has the index of the archive, all of its image for this machine, and the identity that a kubelet sees is
// the digest of its configuration.
func (n node) sameDigests(t *testing.T, image string, files map[string][]byte) {
	t.Helper()
	read := func(name string) (d document) {
		require.NoError(t, json.Unmarshal(files[name], &d), name)
		return d
	}
	blob := func(digest string) string { return "blobs/" + strings.Replace(digest, ":", "/", 1) }
	index := read("index.json").Manifests[0]
	found := false
	for line := range strings.Lines(n.ctr(t, "images", "list")) {
		if fields := strings.Fields(line); fields[0] == image {
			require.Equal(t, index.Digest, fields[2])
			found = true
		}
	}
	require.True(t, found, "the name of the release")
	require.Regexp(t, `complete \(2/2\)`, n.ctr(t, "images", "check", "name=="+image))
	for _, m := range read(blob(index.Digest)).Manifests {
		if m.Platform.Architecture == "amd64" {
			require.Equal(t, string(files[blob(m.Digest)]), n.ctr(t, "content", "get", m.Digest))
			require.Equal(t, read(blob(m.Digest)).Config.Digest, n.CRI(t, "image", image).Image.ID)
			return
		}
	}
	t.Fatal("the image has no amd64")
}

// run runs a container of a read-only image.
func (n node) run(t *testing.T, arguments ...string) (nodes.Result, error) {
	t.Helper()
	return n.Exec(t.Context(), append([]string{"ctr", "--namespace=k8s.io", "run", "--read-only"}, arguments...)...)
}

// help: the entrypoint of the image is the manager.
func (n node) help(t *testing.T, image string) {
	t.Helper()
	r, err := n.run(t, "--rm", image, "help", "/manager", "--help")
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, "%s", r.Stderr)
	require.Contains(t, r.Stdout+r.Stderr, "--watch-filter")
	r, err = n.run(t, "--rm", image, "entrypoint")
	require.NoError(t, err)
	require.Equal(t, 1, r.ExitCode)
	require.Contains(t, r.Stderr, "find the management cluster", "it is in no cluster")
}

// runs: with the arguments, the user, the rights and the root of the Deployment, and with what a kubelet puts into a container, the
// manager connects to the API server. This one answers nothing, so that the manager waits.
func (n node) runs(t *testing.T, image string, d appsv1.Deployment) {
	t.Helper()
	c := d.Spec.Template.Spec.Containers[0]
	require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem)
	require.False(t, *c.SecurityContext.AllowPrivilegeEscalation)
	require.Equal(t, "ALL", string(c.SecurityContext.Capabilities.Drop[0]))
	require.Equal(t, "RuntimeDefault", string(d.Spec.Template.Spec.SecurityContext.SeccompProfile.Type))
	for name, text := range map[string]string{"token": "token", "namespace": d.Namespace, "ca.crt": string(authority.New(t).Certificate)} {
		n.Write(t, account+"/"+name, text)
	}
	n.Write(t, "/etc/resolv.conf", "") // ctr mounts it for a container with the network of the node
	n.MustExec(t, "systemd-run", "--socket-property=ListenStream=127.0.0.1:6443", "sleep", "infinity")
	arguments := []string{
		"--detach", "--log-uri=file://" + log, "--net-host", "--seccomp",
		"--env=KUBERNETES_SERVICE_HOST=127.0.0.1", "--env=KUBERNETES_SERVICE_PORT=6443",
		"--mount=type=bind,src=" + account + ",dst=/var/run/secrets/kubernetes.io/serviceaccount,options=rbind:ro",
	}
	for _, capability := range strings.Fields(capabilities) {
		arguments = append(arguments, "--cap-drop="+capability)
	}
	argv := append(slices.Clone(c.Command), defaults(c.Args)...)
	r, err := n.run(t, append(append(arguments, image, "manager"), argv...)...)
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, "%s", r.Stderr)

	fields := strings.Fields(n.ctr(t, "task", "list"))
	require.Equal(t, "manager", fields[3])
	proc := "/proc/" + fields[4]
	n.await(t, "sh", "-c", "ss --tcp --processes --numeric | grep '127.0.0.1:6443.*pid="+fields[4]+",'")
	require.Equal(t, strings.Join(argv, "\x00")+"\x00", n.MustExec(t, "cat", proc+"/cmdline").Stdout)
	status := n.MustExec(t, "cat", proc+"/status").Stdout
	user := *c.SecurityContext.RunAsUser // ctr takes the image's
	for _, line := range []string{
		fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", user), "CapEff:\t0000000000000000\n", "CapBnd:\t0000000000000000\n", "NoNewPrivs:\t1\n", "Seccomp:\t2\n",
	} {
		require.Contains(t, status, line)
	}
	require.Regexp(t, `(?m)^\S+ / ro,`, n.MustExec(t, "cut", "-d", " ", "-f", "4-6", proc+"/mountinfo").Stdout)
	n.ctr(t, "task", "kill", "--signal=SIGKILL", "manager")
}

// defaults are arguments with the defaults of clusterctl's variables, which have the form ${NAME:=VALUE}.
func defaults(arguments []string) []string {
	var all []string
	for _, a := range arguments {
		if flag, variable, ok := strings.Cut(a, "${"); ok {
			_, value, _ := strings.Cut(strings.TrimSuffix(variable, "}"), ":=")
			a = flag + value
		}
		all = append(all, a)
	}
	return all
}

// capabilities are those that ctr leaves to a container.
const capabilities = `CAP_CHOWN CAP_DAC_OVERRIDE CAP_FSETID CAP_FOWNER CAP_MKNOD CAP_NET_RAW CAP_SETGID CAP_SETUID CAP_SETFCAP
	CAP_SETPCAP CAP_NET_BIND_SERVICE CAP_SYS_CHROOT CAP_KILL CAP_AUDIT_WRITE`

// await runs a program until it ends with success.
func (n node) await(t *testing.T, argv ...string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		r, err := n.Exec(t.Context(), argv...)
		require.NoError(t, err)
		if r.ExitCode == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s\n%s", r.Stderr, n.MustExec(t, "tail", log).Stdout)
		}
	}
}
