package layout

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// hostsFile says how the registry of its directory is reached.
const hostsFile = "hosts.toml"

// Files beside a hosts.toml begin with this, so that what an earlier document left behind is known again. They end in
// .pem and .key: what ends in .crt or .cert, containerd reads by itself where it cannot make sense of the hosts.toml.
const hostFilePrefix = "machineadm-"

// certs is the tree of registries, for a release: of each host its hosts.toml, and the certificates and keys that it
// names, these first. containerd reads it anew for every pull. Source: docs/hosts.md of containerd.
func RegistryFiles(d settings.Desired, r settings.Release) []sdk.FileSpec {
	var all []sdk.FileSpec
	at := settings.PathsOf(d.OS)
	for _, g := range d.Registries {
		if !g.HasTree() {
			continue
		}
		t := tree{Paths: at, directory: at.HostDirectory(g.Host)}
		t.text.WriteString(header("docs/hosts.md of containerd"))
		t.registry(g, r)
		all = append(append(all, t.beside...), sdk.FileSpec{
			Path: at.Join(t.directory, hostsFile), Content: t.text.Bytes(), Mode: modeOf(t.secret), Sensitive: t.secret,
		})
	}
	return all
}

// tree is the directory of one registry.
type tree struct {
	settings.Paths
	directory string
	text      bytes.Buffer
	beside    []sdk.FileSpec
	secret    bool
}

func (t *tree) registry(g settings.Registry, r settings.Release) {
	if g.Server.Url != "" {
		t.line("server", quoted(g.Server.Url))
	}
	t.access("", "server", g.Server.Access)
	hosts := g.Mirrors
	if last := len(hosts) - 1; last >= 0 && g.Lends(hosts[last]) {
		hosts = hosts[:last] // it is the server, which is asked behind the others anyway
	}
	for i, mirror := range hosts {
		t.host(fmt.Sprintf("mirror-%d", i+1), mirror)
	}
	if len(hosts) == 0 && g.Server.Url != "" && !r.Since(2, 0) {
		// Until 2.0 containerd takes a file without any host for a broken one.
		t.host("server", g.Server)
	}
}

// host writes the table of one host. containerd asks them in the order of their tables.
func (t *tree) host(name string, e settings.Endpoint) {
	table := "host." + quoted(e.Url)
	fmt.Fprintf(&t.text, "\n[%s]\n", table)
	t.access(table, name, e.Access)
}

func (t *tree) line(key, value string) { fmt.Fprintf(&t.text, "%s = %s\n", key, value) }

func (t *tree) access(table, name string, a settings.Access) {
	if len(a.Capabilities) > 0 {
		all := make([]string, 0, len(a.Capabilities))
		for _, capability := range a.Capabilities {
			all = append(all, quoted(capability))
		}
		t.line("capabilities", "["+strings.Join(all, ", ")+"]")
	}
	if a.CA != "" {
		t.line("ca", quoted(t.file(name+"-ca.pem", []byte(a.CA), false)))
	}
	if a.Client != nil {
		cert := t.file(name+"-client.pem", []byte(a.Client.Cert), false)
		key := t.file(name+"-client.key", a.Client.Key.Reveal(), true)
		t.line("client", fmt.Sprintf("[[%s, %s]]", quoted(cert), quoted(key)))
	}
	if a.SkipVerify {
		t.line("skip_verify", "true")
	}
	if a.OverridePath {
		t.line("override_path", "true")
	}
	if a.DialTimeout != "" {
		t.line("dial_timeout", quoted(a.DialTimeout))
	}
	if len(a.Headers) == 0 {
		return
	}
	t.secret = t.secret || a.Secret()
	header := "header"
	if table != "" {
		header = table + ".header"
	}
	fmt.Fprintf(&t.text, "\n[%s]\n", header)
	for _, key := range slices.Sorted(maps.Keys(a.Headers)) {
		t.line(quoted(key), quoted(string(a.Headers[key].Reveal())))
	}
}

// file puts a file beside the hosts.toml and returns its name, which containerd looks for there.
func (t *tree) file(name string, content []byte, secret bool) string {
	name = hostFilePrefix + name
	path := t.Join(t.directory, name)
	if !slices.ContainsFunc(t.beside, func(s sdk.FileSpec) bool { return s.Path == path }) {
		text := append(bytes.TrimSpace(content), '\n')
		t.beside = append(t.beside, sdk.FileSpec{Path: path, Content: text, Mode: modeOf(secret), Sensitive: secret})
	}
	return name
}

// quoted writes a string of TOML that both versions of its decoder read alike.
func quoted(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	return `"` + b.String() + `"`
}
