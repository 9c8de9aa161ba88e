package containerruntime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/containerd"
)

// indented is a PEM text as a block of YAML.
func indented(text, by string) string {
	return "|\n" + by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by) + "\n"
}

// puller pulls a different image each time, so that nothing is cached.
type puller struct {
	node
	*containerd.Registry
	count int
}

func (p *puller) image(t *testing.T) string {
	t.Helper()
	p.count++
	return p.AddImage(t, fmt.Sprintf("tiny-%d", p.count))
}

func (p *puller) works(t *testing.T, image, user, password string) {
	t.Helper()
	if a := p.Pull(t, image, user, password); a.Error != "" {
		t.Errorf("pull %s: %s\n%s", image, a.Error, p.files(t))
	}
	if a := p.CRI(t, "image", image); !a.Found {
		t.Errorf("%s was pulled and is not there: %q", image, a.Error)
	}
}

func (p *puller) fails(t *testing.T, image, user, password string, parts ...string) {
	t.Helper()
	a := p.Pull(t, image, user, password)
	if a.Error == "" {
		t.Errorf("%s was pulled", image)
	}
	for _, part := range parts {
		if !strings.Contains(a.Error, part) {
			t.Errorf("%q is missing in %q", part, a.Error)
		}
	}
	if strings.Contains(a.Error, p.Password) {
		t.Error("the error contains the password")
	}
}

// TestPull pulls through a real registry, with an unknown CA, as configured by documents.
func TestPull(t *testing.T) {
	t.Parallel()
	for _, v := range containerd.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			n := start(t, v)
			p := &puller{node: n, Registry: n.StartRegistry(t)}
			n.reset(t, nil)
			p.setUp(t)
			invocation := n.invocation(t)
			t.Run("server", p.server)
			t.Run("mirror", p.mirror)
			t.Run("mirror only", p.mirrorOnly)
			t.Run("default", p.everyHost)
			t.Run("wrong CA", p.wrongCA)
			t.Run("dead mirror", p.deadMirror)
			t.Run("client certificate", p.clientCertificate)
			if n.invocation(t) != invocation {
				t.Error("the daemon was restarted for a registry")
			}
			t.Run("password", p.password)
			t.Run("trusted CAs", p.trustedCAs)
			t.Run("proxy", p.proxy)
		})
	}
}

// setUp configures the directory of registries, which needs a restart.
func (p *puller) setUp(t *testing.T) {
	t.Helper()
	p.apply(t, "  registries:\n    first.test:\n      skipVerify: true\n")
}

func (p *puller) ca(by string) string { return indented(string(p.CA), by) }

func (p *puller) server(t *testing.T) {
	p.apply(t, "  registries:\n    "+p.Host+":\n      ca: "+p.ca("        "))
	p.works(t, p.image(t), p.User, p.Password)
	p.fails(t, p.image(t), p.User, "wrong", "401 Unauthorized")
}

func (p *puller) mirror(t *testing.T) {
	p.apply(t, "  registries:\n    upstream.test:\n      mirrors:\n      - url: https://"+p.Host+"\n        ca: "+p.ca("          "))
	p.works(t, strings.Replace(p.image(t), p.Host, "upstream.test", 1), p.User, p.Password)
}

// mirrorOnly: nothing may reach the origin, which answers here and would show it.
func (p *puller) mirrorOnly(t *testing.T) {
	spec := "  registries:\n    origin.test:5001:\n      server: https://" + p.Host + "\n      mirrors:\n      - url: https://" + p.Host + "\n        ca: " + p.ca("          ")
	p.MustExec(t, "sh", "-c", "echo 127.0.0.1 origin.test >>/etc/hosts; rm -f /run/asked; systemctl stop origin 2>/dev/null; "+
		`systemd-run --quiet --unit=origin perl -MIO::Socket::INET -e 'my $s=IO::Socket::INET->new(Listen=>5,LocalPort=>5001,ReuseAddr=>1) or die; while(my $c=$s->accept){open F,">>/run/asked";print F "x";close F;close $c}'; `+
		"timeout 20 sh -c 'until [ -e /run/asked ]; do bash -c \": </dev/tcp/127.0.0.1/5001\" 2>/dev/null; sleep 0.05; done' && rm /run/asked")
	p.apply(t, spec)
	p.works(t, strings.Replace(p.image(t), p.Host, "origin.test:5001", 1), p.User, p.Password)
	p.fails(t, "origin.test:5001/missing:1", p.User, p.Password, "not found")
	if r := p.Bash(t, "cat /run/asked"); r.ExitCode == 0 {
		t.Error("the origin got a request")
	}
}

func (p *puller) everyHost(t *testing.T) {
	p.apply(t, "  registries:\n    _default:\n      mirrors:\n      - url: https://"+p.Host+"\n        ca: "+p.ca("          "))
	p.works(t, strings.Replace(p.image(t), p.Host, "whatever.test", 1), p.User, p.Password)
	if r := p.Bash(t, "ls /etc/containerd/certs.d"); strings.TrimSpace(r.Stdout) != "_default" {
		t.Errorf("registries of earlier documents are left: %q", r.Stdout)
	}
}

func (p *puller) wrongCA(t *testing.T) {
	p.apply(t, "  registries:\n    "+p.Host+":\n      ca: "+indented(string(authority.New(t).Certificate), "        "))
	p.fails(t, p.image(t), p.User, p.Password, "certificate signed by unknown authority")
}

func (p *puller) deadMirror(t *testing.T) {
	p.apply(t, "  registries:\n    upstream.test:\n      server: https://127.0.0.1:9\n      mirrors:\n      - url: https://127.0.0.1:9\n        skipVerify: true\n")
	p.fails(t, "upstream.test/tiny:1", p.User, p.Password, "127.0.0.1:9", "connection refused")
}

// clientCertificate: a registry that accepts no other client.
func (p *puller) clientCertificate(t *testing.T) {
	const script = `set -e; mkdir -p /etc/client; cd /etc/client
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem -subj /CN=clients -days 3650 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout node.key -out node.csr -subj /CN=node 2>/dev/null
openssl x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out node.pem -days 3650 2>/dev/null
sed -e 's/127.0.0.1:5000/127.0.0.1:5443/' -e 's|key: /etc/registry/tls.key}|key: /etc/registry/tls.key, clientcas: [/etc/client/ca.pem]}|' /etc/registry/config.yml >/etc/registry/client.yml
systemctl stop registry-client 2>/dev/null || true
systemd-run --quiet --unit=registry-client /usr/local/bin/registry serve /etc/registry/client.yml
timeout 20 bash -c 'until : </dev/tcp/127.0.0.1/5443; do sleep 0.05; done' 2>/dev/null`
	if r := p.Bash(t, script); r.ExitCode != 0 {
		t.Fatalf("the registry for clients: %s%s", r.Stdout, r.Stderr)
	}
	read := func(file, by string) string { return indented(p.MustExec(t, "cat", file).Stdout, by) }
	host := strings.Replace(p.Host, ":5000", ":5443", 1)
	spec := "  registries:\n    " + host + ":\n      ca: " + p.ca("        ")
	p.apply(t, spec)
	p.fails(t, strings.Replace(p.image(t), p.Host, host, 1), p.User, p.Password, "tls")
	p.apply(t, spec+"      client:\n        cert: "+read("/etc/client/node.pem", "          ")+"        key: {value: "+
		fmt.Sprintf("%q", p.MustExec(t, "cat", "/etc/client/node.key").Stdout)+"}\n")
	p.works(t, strings.Replace(p.image(t), p.Host, host, 1), p.User, p.Password)
	if r := p.Bash(t, "find /etc/containerd/certs.d -name '*.key' -perm 600 | wc -l"); strings.TrimSpace(r.Stdout) != "1" {
		t.Errorf("the key is not for its owner alone: %s", p.Bash(t, "ls -lR /etc/containerd/certs.d").Stdout)
	}
}

// password: the daemon's own, not the pull's.
func (p *puller) password(t *testing.T) {
	spec := func(password string) string {
		return "  registries:\n    " + p.Host + ":\n      auth: {username: " + p.User + ", password: {value: " + password + "}}\n      ca: " + p.ca("        ")
	}
	p.apply(t, spec(p.Password))
	p.works(t, p.image(t), "", "")
	if r := p.Bash(t, "grep -rl "+p.Password+" /etc/containerd /run/machineadm /var/lib/machineadm/reports; find /etc/containerd -type f -perm /044 -exec grep -l "+p.Password+" {} +"); strings.Count(r.Stdout, "\n") != 1 {
		t.Errorf("the password is in: %s", r.Stdout)
	}
	if strings.Contains(p.Journal(t, "containerd.service"), p.Password) {
		t.Error("the daemon logs the password of its configuration")
	}
	p.apply(t, spec("wrong"))
	p.fails(t, p.image(t), "", "", "401 Unauthorized")
}

func (p *puller) trustedCAs(t *testing.T) {
	p.apply(t, "  trustedCAs: "+p.ca("    "))
	p.works(t, p.image(t), p.User, p.Password)
}

func (p *puller) proxy(t *testing.T) {
	proxy := p.StartProxy(t)
	// What administrators have left there: a file of variables ahead of ours, and a drop-in behind it.
	const dir = "/etc/systemd/system/containerd.service.d/"
	p.Write(t, "/etc/default/containerd-proxy", "HTTPS_PROXY=http://old-proxy.invalid:3128\nNO_PROXY=registry.test\n")
	p.Write(t, dir+"10-env.conf", "[Service]\nEnvironmentFile=/etc/default/containerd-proxy\n")
	p.Write(t, dir+"zzz-proxy.conf", "[Service]\nEnvironment=HTTPS_PROXY=http://older-proxy.invalid:3128\n")
	p.apply(t, "  trustedCAs: "+p.ca("    ")+"  proxy: {https: \""+proxy.URL+"\", noProxy: [other.test]}\n")
	p.works(t, p.image(t), p.User, p.Password)
	p.MustExec(t, "rm", "/etc/default/containerd-proxy", dir+"10-env.conf", dir+"zzz-proxy.conf")
	p.apply(t, "  trustedCAs: "+p.ca("    "))
	p.fails(t, p.image(t), p.User, p.Password)
}
