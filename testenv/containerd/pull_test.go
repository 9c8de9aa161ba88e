package containerd_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/containerd"
)

const certs = "/etc/containerd/certs.d"

// withConfigPath is a configuration that names the directory of hosts.toml: only 2.x looks there by itself.
func withConfigPath(v containerd.Version, dir string) map[string]string {
	if v.Packaged() {
		return map[string]string{containerd.Config: v2 + "[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '" + dir + "'\n"}
	}
	return map[string]string{containerd.Config: v3 + "[plugins.'io.containerd.cri.v1.images'.registry]\nconfig_path = '" + dir + "'\n"}
}

// puller pulls a different image for each case, so that nothing is cached.
type puller struct {
	*containerd.Registry
	d    *containerd.Daemon
	kept *sections
	n    int
}

// pulls records the daemon's behavior with hosts.toml, certificates and passwords. Where a pull fails, the daemon's message is
// kept in testdata/pull-VERSION.txt.
func pulls(t *testing.T, d *containerd.Daemon) {
	p := &puller{Registry: d.StartRegistry(t), d: d, kept: readSections(t, "pull-"+string(d.Version)+".txt")}
	t.Run("no-config-path", p.noConfigPath)
	t.Run("config-path-list", p.configPathList)
	p.restart(t, withConfigPath(d.Version, certs))
	// From here on the daemon is not restarted.
	began := p.daemon(t)
	t.Run("hosts.toml", p.certificates)
	t.Run("passwords", p.passwords)
	t.Run("directories", p.directories)
	t.Run("mirror", p.mirror)
	if now := p.daemon(t); now != began {
		t.Errorf("the daemon was restarted: %s, %s", began, now)
	}
	t.Run("config-path", p.configPath)
	t.Run("secrets", p.secrets)
	t.Run("proxy", p.proxy)
}

func (p *puller) restart(t *testing.T, files map[string]string) {
	t.Helper()
	if o := start(t, p.d, files); !o.up {
		t.Fatalf("not up: %q", o.said)
	}
}

func (p *puller) daemon(t *testing.T) string {
	t.Helper()
	return p.d.MustExec(t, "systemctl", "show", "--property=InvocationID,NRestarts", "containerd").Stdout
}

// hosts writes a hosts.toml into a directory and leaves no other one.
func (p *puller) hosts(t *testing.T, dir, text string) {
	t.Helper()
	p.d.MustExec(t, "sh", "-c", "rm -rf "+certs+" /etc/other.d")
	p.d.Write(t, "/etc/ca.pem", string(p.CA))
	if dir != "" {
		p.d.Write(t, dir+"/hosts.toml", text)
	}
}

// server is a hosts.toml that says how to reach the registry itself.
func (p *puller) server(more string) string {
	return fmt.Sprintf("server = 'https://%s'\n[host.'https://%s']\n%s\n", p.Host, p.Host, more)
}

const trusted = "ca = '/etc/ca.pem'"

func (p *puller) image(t *testing.T) string {
	t.Helper()
	p.n++
	return p.AddImage(t, fmt.Sprintf("tiny-%d", p.n))
}

// works pulls as the right user.
func (p *puller) works(t *testing.T) {
	t.Helper()
	image := p.image(t)
	if a := p.d.Pull(t, image, p.User, p.Password); a.Error != "" || !strings.HasPrefix(a.Ref, "sha256:") {
		t.Errorf("pull: %q, %q\n%s", a.Ref, a.Error, p.d.Journal(t, "testenv-registry.service"))
	}
	if a := p.d.CRI(t, "image", image); !a.Found || len(a.Image.Tags) != 1 || a.Image.Tags[0] != image {
		t.Errorf("what was pulled is not there: %+v, %q", a.Image, a.Error)
	}
}

// fails keeps why.
func (p *puller) fails(t *testing.T, section, user, password string) {
	t.Helper()
	image, mark := p.image(t), journalEnd(t, p.d)
	a := p.d.Pull(t, image, user, password)
	if a.Error == "" {
		t.Errorf("%s: it was pulled", section)
	}
	if strings.Contains(a.Error, p.Password) {
		t.Errorf("%s: the error contains the password", section)
	}
	p.kept.check(t, section, regexp.MustCompile(`tiny-\d+`).ReplaceAllString(said(a.Error), "tiny")+p.errors(t, mark))
	if a := p.d.CRI(t, "image", image); a.Found {
		t.Errorf("%s: the image is there", section)
	}
}

// errors are what the daemon logs of a hosts.toml besides: it does not fail the pull by it.
func (p *puller) errors(t *testing.T, mark string) string {
	t.Helper()
	text := ""
	for line := range strings.Lines(said(journalSince(t, p.d, mark))) {
		if strings.Contains(line, "hosts.toml") || strings.Contains(line, "host tree") {
			text += "\nlog: " + strings.TrimSpace(line)
		}
	}
	return text
}

// noConfigPath: without config_path no version reads hosts.toml, but 2.3 when it pulls without its transfer service: that
// service takes the two directories of the default for the name of one.
func (p *puller) noConfigPath(t *testing.T) {
	p.restart(t, nil)
	p.hosts(t, certs+"/"+p.Host, p.server(trusted))
	p.fails(t, "no-config-path", p.User, p.Password)
	if p.d.Version != containerd.V23 {
		return
	}
	p.restart(t, map[string]string{containerd.Config: v3 + images3 + "use_local_image_pull = true\n"})
	p.hosts(t, certs+"/"+p.Host, p.server(trusted))
	p.works(t)
}

// configPathList: a list of directories works in 1.6 and 1.7, and in 2.x without the transfer service.
func (p *puller) configPathList(t *testing.T) {
	files := withConfigPath(p.d.Version, "/etc/other.d:"+certs)
	p.restart(t, files)
	p.hosts(t, certs+"/"+p.Host, p.server(trusted))
	if p.d.Version.Packaged() {
		p.works(t)
		return
	}
	p.fails(t, "config-path-list", p.User, p.Password)
	files[containerd.Config] += images3 + "use_local_image_pull = true\n"
	p.restart(t, files)
	p.hosts(t, certs+"/"+p.Host, p.server(trusted))
	p.works(t)
}

func (p *puller) certificates(t *testing.T) {
	dir := certs + "/" + p.Host
	p.hosts(t, "", "")
	p.fails(t, "no-hosts.toml", p.User, p.Password)
	p.hosts(t, dir, p.server(trusted))
	p.works(t) // and the daemon was not notified
	p.hosts(t, dir, fmt.Sprintf("server = 'https://%s'\n%s\n", p.Host, trusted))
	if p.d.Version.Packaged() {
		p.fails(t, "ca-outside-of-a-host", p.User, p.Password)
	} else {
		p.works(t)
	}
	p.hosts(t, dir, p.server("skip_verify = true"))
	p.works(t)

	p.hosts(t, dir, p.server(trusted))
	p.d.Write(t, "/etc/ca.pem", string(authority.New(t).Certificate))
	p.fails(t, "wrong-ca", p.User, p.Password)
	p.hosts(t, dir, p.server("ca = '/etc/missing.pem'"))
	p.fails(t, "missing-ca", p.User, p.Password)
	p.hosts(t, dir, p.server("ca = 3"))
	p.fails(t, "wrong-type", p.User, p.Password)
	p.hosts(t, dir, "server = \n")
	p.fails(t, "syntax-error", p.User, p.Password)
	p.hosts(t, dir, p.server(trusted+"\ntypo = 1"))
	p.works(t)
	p.hosts(t, dir, p.server(trusted+"\ncapabilities = ['push']"))
	p.fails(t, "no-capability", p.User, p.Password)
}

func (p *puller) passwords(t *testing.T) {
	dir := certs + "/" + p.Host
	p.hosts(t, dir, p.server(trusted))
	p.fails(t, "nobody", "", "")
	p.fails(t, "wrong-password", p.User, "wrong")
	p.fails(t, "wrong-user", "nobody", p.Password)

	header := base64.StdEncoding.EncodeToString([]byte(p.User + ":" + p.Password))
	p.hosts(t, dir, p.server(trusted)+fmt.Sprintf("[host.'https://%s'.header]\nauthorization = 'Basic %s'\n", p.Host, header))
	if a := p.d.Pull(t, p.image(t), "", ""); a.Error != "" {
		t.Errorf("a password in a header of hosts.toml: %s", a.Error)
	}
}

func (p *puller) directories(t *testing.T) {
	for _, name := range []string{p.Host, strings.ReplaceAll(p.Host, ":", "_") + "_", "_default"} {
		p.hosts(t, certs+"/"+name, p.server(trusted))
		p.works(t)
	}
	p.hosts(t, certs+"/"+strings.Split(p.Host, ":")[0], p.server(trusted))
	p.fails(t, "directory-without-port", p.User, p.Password)
}

// mirror: an image of a registry that does not exist comes from the mirror.
func (p *puller) mirror(t *testing.T) {
	image := strings.Replace(p.image(t), p.Host, "upstream.test", 1)
	p.hosts(t, certs+"/upstream.test", p.server(trusted+"\ncapabilities = ['pull', 'resolve']"))
	if a := p.d.Pull(t, image, p.User, p.Password); a.Error != "" {
		t.Errorf("from the mirror: %s", a.Error)
	}
	if a := p.d.CRI(t, "image", image); !a.Found || a.Image.Tags[0] != image {
		t.Errorf("what came from the mirror: %+v, %q", a.Image, a.Error)
	}
}

func (p *puller) configPath(t *testing.T) {
	p.restart(t, withConfigPath(p.d.Version, "/etc/other.d"))
	p.hosts(t, "/etc/other.d/"+p.Host, p.server(trusted))
	p.works(t)
	p.hosts(t, certs+"/"+p.Host, p.server(trusted))
	p.fails(t, "another-config-path", p.User, p.Password)
}

// secrets: the password of a pull is not in the daemon's output.
func (p *puller) secrets(t *testing.T) {
	for what, text := range map[string]string{
		"the journal": p.d.Journal(t, "containerd.service"), "the status": fmt.Sprint(p.d.CRI(t, "status").Info),
		"the dump": p.d.Dump(t, containerd.Config).Stdout,
	} {
		if strings.Contains(text, p.Password) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(p.User+":"+p.Password))) {
			t.Errorf("%s contains the password", what)
		}
	}
}

// proxy: the daemon takes the environment of its unit, once it is restarted.
func (p *puller) proxy(t *testing.T) {
	p.restart(t, withConfigPath(p.d.Version, certs))
	p.hosts(t, certs+"/"+p.Host, p.server(trusted))
	p.works(t)
	proxy := p.d.StartProxy(t)
	p.d.Restart(t) // a program in Go remembers /etc/hosts for some seconds
	direct := func(when string) {
		t.Helper()
		if a := p.d.Pull(t, p.image(t), p.User, p.Password); !strings.Contains(a.Error, "lookup registry.test") {
			t.Errorf("%s: %q", when, a.Error)
		}
	}
	direct("without the proxy")
	p.d.Write(t, "/etc/systemd/system/containerd.service.d/http-proxy.conf", "[Service]\nEnvironment=\"HTTPS_PROXY="+proxy.URL+"\"\n")
	p.d.MustExec(t, "systemctl", "daemon-reload")
	direct("before the restart")
	p.d.Restart(t)
	p.works(t)
	if log := proxy.Log(t); !strings.Contains(log, "CONNECT "+p.Host) {
		t.Errorf("the proxy has not seen the pull:\n%s", log)
	}

	p.d.Write(t, "/etc/systemd/system/containerd.service.d/http-proxy.conf", "[Service]\nEnvironment=\"HTTPS_PROXY="+proxy.URL+"\" \"NO_PROXY="+p.Host+"\"\n")
	p.d.MustExec(t, "systemctl", "daemon-reload")
	p.d.Restart(t)
	direct("with NO_PROXY")
}
