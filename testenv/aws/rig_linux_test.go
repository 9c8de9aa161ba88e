package aws

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	machine "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	endpointsFile = "/etc/machineadm/endpoints.yaml"
	inside        = "AWS_TESTS_INSIDE" // is set in the network namespace
	addLink       = "ip link set lo up && ip addr add 169.254.169.254/32 dev lo && " + ownEtc + "exec \"$0\" \"$@\""
	// ownEtc mounts a directory above /etc, so that a test can permit endpoints.
	ownEtc = "mount -t tmpfs none \"$AWS_TESTS_SCRATCH\" && cd \"$AWS_TESTS_SCRATCH\" && mkdir upper work && " +
		"mount -t overlay -o lowerdir=/etc,upperdir=$PWD/upper,workdir=$PWD/work none /etc && mkdir /etc/machineadm && cd \"$OLDPWD\" && "
	awscli   = "/usr/bin/aws" // that of Debian
	python   = "/usr/bin/python3"
	region   = "eu-central-1"
	account  = "111122223333"
	kmsKey   = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	otherKey = "arn:aws:kms:eu-central-1:111122223333:key/mrk-0987dcba09fedcba09fedcba09fedcba"
	alias    = "arn:aws:kms:eu-central-1:111122223333:alias/machineadm"
)

// TestMain runs the tests again in a network namespace of their own, if this is root. What they build is built before.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 || os.Getenv(inside) != "" || !machine.Runs(machine.System) {
		os.Exit(m.Run())
	}
	ctx := context.Background()
	for _, tool := range []string{"s3/versitygw", "s3/presign"} {
		if _, err := tools.Path(ctx, os.Stderr, ".", tool); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := nodes.BuildCache(ctx, nodes.Options{Suite: nodes.Trixie}, log.Printf); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c := exec.Command("sh", append([]string{"-c", addLink}, os.Args...)...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	scratch, err := os.MkdirTemp("", "aws")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c.Env = append(os.Environ(), inside+"=1", "AWS_TESTS_SCRATCH="+scratch)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS} // the latter makes mounts private
	err = c.Run()
	_ = os.Remove(scratch) // its mount has ended with the namespace
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rig is one server with a certificate, and users.
type rig struct {
	ca       authority.Authority
	caFile   string
	endpoint string // of the stand-in
	log      func() string
}

// user of the stand-in.
type user struct {
	ID      string   `json:"-"`
	Secret  string   `json:"secret"`
	Token   string   `json:"token,omitempty"`
	Expired bool     `json:"expired,omitempty"`
	Actions []string `json:"actions"`
}

type state struct {
	Users      map[string]user             `json:"users"`
	Parameters map[string][]string         `json:"parameters"`
	Secrets    map[string][]map[string]any `json:"secrets"`
	Objects    map[string]string           `json:"objects"`
	Clock      int                         `json:"clock"` // seconds, by which it differs
}

func need(t testing.TB) {
	t.Helper()
	machine.Tier(t, machine.System)
	machine.Root(t)
	for _, tool := range []string{"ip", "curl", awscli} {
		machine.Tool(t, tool)
	}
}

// start starts the stand-in.
func start(t testing.TB, s state) rig {
	t.Helper()
	need(t)
	dir := t.TempDir()
	r := rig{ca: authority.New(t), caFile: filepath.Join(dir, "ca.pem")}
	certificate, key := r.ca.Issue(t, "localhost", func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} })
	for name, data := range map[string][]byte{"ca.pem": r.ca.Certificate, "tls.crt": certificate, "tls.key": key} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	input, err := json.Marshal(s)
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), python, "-I", "standin.py", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	c.Stdin = bytes.NewReader(input)
	said := &output{}
	c.Stderr = said
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewReader(out)
	port, err := lines.ReadString('\n')
	require.NoError(t, err, said)
	done := make(chan struct{})
	go func() { _, _ = io.Copy(said, lines); close(done) }()
	t.Cleanup(func() { _ = c.Process.Kill(); <-done; _ = c.Wait() })
	r.endpoint, r.log = "https://127.0.0.1:"+strings.TrimSpace(port), said.String
	return r
}

// aws runs awscli, with the keys of a user or of the metadata service, and returns its output.
func (r rig) aws(t testing.TB, u user, arguments ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), awscli, arguments...)
	c.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "AWS_CA_BUNDLE=" + r.caFile, "AWS_MAX_ATTEMPTS=1"}
	if u.ID != "" {
		c.Env = append(c.Env, "AWS_ACCESS_KEY_ID="+u.ID, "AWS_SECRET_ACCESS_KEY="+u.Secret, "AWS_DEFAULT_REGION="+region)
		if u.Token != "" {
			c.Env = append(c.Env, "AWS_SESSION_TOKEN="+u.Token)
		}
	}
	out, err := c.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return string(out), err
}

// serveMetadata serves the metadata of an instance.
func serveMetadata(t testing.TB, m *Metadata, addresses ...string) {
	t.Helper()
	for _, address := range addresses {
		config := net.ListenConfig{Control: func(network, _ string, c syscall.RawConn) (err error) {
			if network == "tcp4" { // the hop limit of the service: no router forwards its answers
				return errors.Join(c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_TTL, 1) }), err)
			}
			return nil
		}}
		l, err := config.Listen(t.Context(), "tcp", address)
		require.NoError(t, err)
		server := &http.Server{Handler: m, ReadHeaderTimeout: time.Minute}
		done := make(chan struct{})
		go func() { _ = server.Serve(l); close(done) }()
		t.Cleanup(func() { _ = server.Close(); <-done })
	}
}

// output collects what a program writes.
type output struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.Write(p)
}

// String returns what was written so far.
func (o *output) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()
}

// process is a running plugin.
type process struct {
	*launch.Process
	stderr *output
}

// built returns the path of a plugin of the checkout.
func built(t testing.TB, source string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{"plugin": source}))
	return filepath.Join(dir, "plugin")
}

// plugin starts a plugin of the checkout.
func plugin(t testing.TB, source string) process {
	t.Helper()
	said := &output{}
	p, err := launch.Start(t.Context(), launch.Options{
		Command: exec.Command(built(t, source)), SocketDir: t.TempDir(), Stderr: said,
		Environment: launch.Environment(runtime.GOOS, func(name string) (string, bool) {
			return "http://127.0.0.1:1", name == "HTTP_PROXY" // which is not for the metadata service
		}),
	})
	require.NoError(t, err, said)
	t.Cleanup(p.Kill)
	return process{p, said}
}

func here() target.Target { return target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH} }

func document(t testing.TB, kind string, spec map[string]any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": spec})
	require.NoError(t, err)
	return data
}

// fetch fetches the object of a RemoteConfig.
func (p process) fetch(t testing.TB, uri string, config map[string]any) (data []byte, revision string, err error) {
	t.Helper()
	err = p.Fetch(t.Context(), pluginv1.FetchRequest{
		Document: document(t, "RemoteConfig", map[string]any{"provider": "p", "uri": uri, "providerConfig": config}), Target: here(), MaxBytes: 16 << 20,
	}, func(c pluginv1.Chunk) error {
		data, revision = append(data, c.Data...), revision+c.Revision
		return nil
	})
	return data, revision, err
}

func secret(text string) map[string]any { return map[string]any{"value": text} }

// config is a providerConfig with the keys of a user, if there is one.
func (r rig) config(u user, more map[string]any) map[string]any {
	all := map[string]any{"endpoint": r.endpoint, "ca": string(r.ca.Certificate)}
	if u.ID != "" {
		all["accessKeyID"], all["secretAccessKey"], all["region"] = u.ID, secret(u.Secret), region
		if u.Token != "" {
			all["sessionToken"] = secret(u.Token)
		}
	}
	for name, value := range more {
		all[name] = value
	}
	return all
}

// permitted is a file that permits an endpoint for the role.
func permitted(endpoint string) []byte {
	return fmt.Appendf(nil, "s3: %[1]s\nssm: %[1]s\nsecretsmanager: %[1]s\nawskms: %[1]s\n", endpoint)
}

// permit permits an endpoint for the role on this machine, as the tests see it.
func permit(t testing.TB, endpoint string) {
	t.Helper()
	require.NoError(t, os.WriteFile(endpointsFile, permitted(endpoint), 0o644)) //nolint:gosec // the file is not secret
	t.Cleanup(func() { _ = os.Remove(endpointsFile) })
}
