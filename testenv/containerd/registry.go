package containerd

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	registryCommand = "/usr/local/bin/registry"
	registryUnit    = "testenv-registry.service"
	registryStorage = "/srv/registry"
	registryName    = "registry.test"
	registryPort    = "5000"
)

// Registry is a distribution registry in a node. It uses TLS with a certificate of an unknown CA, and requires
// a user and a password.
type Registry struct {
	Host     string // name and port, as in the reference of an image
	CA       []byte // PEM
	User     string
	Password string
	daemon   *Daemon
}

const registryConfig = `version: 0.1
log: {accesslog: {disabled: false}}
storage: {filesystem: {rootdirectory: ` + registryStorage + `}}
http:
  addr: 127.0.0.1:` + registryPort + `
  tls: {certificate: /etc/registry/tls.crt, key: /etc/registry/tls.key}
auth: {htpasswd: {realm: testenv, path: /etc/registry/htpasswd}}
`

// htpasswd makes the registry's list of users: a hash of the kind that it reads, by crypt(3).
const htpasswd = `chomp(my $p = <STDIN>); print "robot:", crypt($p, '$2y$05$' . 'testenvtestenvtestenve'), "\n"`

// StartRegistry starts a registry on the daemon's node and waits until it listens.
func (d *Daemon) StartRegistry(t testing.TB) *Registry {
	t.Helper()
	ca := authority.New(t)
	certificate, key := ca.Issue(t, registryName)
	r := &Registry{Host: registryName + ":" + registryPort, CA: ca.Certificate, User: "robot", Password: rand.Text(), daemon: d}
	if err := d.CopyIn(t.Context(), tools.For(t, "registry"), registryCommand, 0o755); err != nil {
		t.Fatal(err)
	}
	d.Write(t, "/etc/registry/config.yml", registryConfig)
	d.Write(t, "/etc/registry/tls.crt", string(certificate))
	d.Write(t, "/etc/registry/tls.key", string(key))
	hash, err := d.ExecInput(t.Context(), strings.NewReader(r.Password+"\n"), "perl", "-e", htpasswd)
	if err != nil || hash.ExitCode != 0 {
		t.Fatalf("hash the password: exit status %d, %v\n%s", hash.ExitCode, err, hash.Stderr)
	}
	d.Write(t, "/etc/registry/htpasswd", hash.Stdout)
	d.MustExec(t, "sh", "-c", "echo 127.0.0.1 "+registryName+" >>/etc/hosts")
	d.serve(t, registryUnit, registryPort, registryCommand, "serve", "/etc/registry/config.yml")
	return r
}

// serve runs a program as a unit of its own and waits until it listens on the port.
func (d *Daemon) serve(t testing.TB, unit, port string, argv ...string) {
	t.Helper()
	d.MustExec(t, append([]string{"systemd-run", "--quiet", "--unit=" + unit}, argv...)...)
	const listens = `until bash -c ": </dev/tcp/127.0.0.1/$1" 2>/dev/null; do
		systemctl is-active --quiet "$2" || exit 1
		sleep 0.02
	done`
	r, err := d.Exec(t.Context(), "timeout", "600", "sh", "-c", listens, "sh", port, unit)
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%s does not listen: exit status %d, %v\n%s", unit, r.ExitCode, err, d.Journal(t, unit))
	}
}

// AddImage puts a small image of its own into the registry and returns its reference.
func (r *Registry) AddImage(t testing.TB, name string) string {
	t.Helper()
	manifest, config, layer, err := image(name)
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := writeTar(&archive, stored(name, "1", manifest, config, layer)); err != nil {
		t.Fatal(err)
	}
	r.daemon.MustExec(t, "mkdir", "-p", registryStorage)
	got, err := r.daemon.ExecInput(t.Context(), &archive, "tar", "-xC", registryStorage)
	if err != nil || got.ExitCode != 0 {
		t.Fatalf("put an image into the registry: exit status %d, %v\n%s", got.ExitCode, err, got.Stderr)
	}
	return fmt.Sprintf("%s/%s:1", r.Host, name)
}

// Journal returns the log of a unit of the node.
func (d *Daemon) Journal(t testing.TB, unit string) string {
	t.Helper()
	return d.MustExec(t, "journalctl", "--no-pager", "--output=cat", "--unit="+unit).Stdout
}
