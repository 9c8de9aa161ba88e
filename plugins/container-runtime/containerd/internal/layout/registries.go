package layout

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// mark begins every file that is ours alone. It names no document, so that two equal documents write the same.
const mark = "# Managed by machineadm, kind ContainerRuntime"

const (
	// hostsFile describes how to reach the registry of its directory.
	hostsFile = "hosts.toml"
	// hostFilePrefix begins the names of the files beside a hosts.toml, so that a later run recognizes them. Their
	// extensions are .pem and .key: without a valid hosts.toml, containerd reads every .crt and .cert.
	hostFilePrefix = "machineadm-"
)

func header(manual string) string {
	return mark + ": what is changed here is overwritten. See " + manual + ".\n"
}

func managed(text []byte) bool { return bytes.HasPrefix(text, []byte(mark)) }

// tree is the directory of one registry.
type tree struct {
	settings.Paths
	directory string
	text      bytes.Buffer
	beside    []sdk.FileSpec
	secret    bool
}

func (t *tree) line(key, value string) { fmt.Fprintf(&t.text, "%s = %s\n", key, value) }

// file adds a file beside the hosts.toml. It returns the name, by which containerd finds it there.
func (t *tree) file(name string, content []byte, secret bool) string {
	name = hostFilePrefix + name
	path := t.Join(t.directory, name)
	if !slices.ContainsFunc(t.beside, func(s sdk.FileSpec) bool { return s.Path == path }) {
		t.beside = append(t.beside, file(path, append(bytes.TrimSpace(content), '\n'), secret))
	}
	return name
}

func (t *tree) access(table, name string, a settings.Access) {
	if len(a.Capabilities) > 0 {
		var all []string
		for _, capability := range a.Capabilities {
			all = append(all, tomledit.Quoted(capability))
		}
		t.line("capabilities", "["+strings.Join(all, ", ")+"]")
	}
	if a.CA != "" {
		t.line("ca", tomledit.Quoted(t.file(name+"-ca.pem", []byte(a.CA), false)))
	}
	if a.Client != nil {
		cert := t.file(name+"-client.pem", []byte(a.Client.Cert), false)
		key := t.file(name+"-client.key", a.Client.Key.Reveal(), true)
		t.line("client", fmt.Sprintf("[[%s, %s]]", tomledit.Quoted(cert), tomledit.Quoted(key)))
	}
	if a.SkipVerify {
		t.line("skip_verify", "true")
	}
	if a.OverridePath {
		t.line("override_path", "true")
	}
	if a.DialTimeout != "" {
		t.line("dial_timeout", tomledit.Quoted(a.DialTimeout))
	}
	if len(a.Headers) == 0 {
		return
	}
	t.secret = true
	fmt.Fprintf(&t.text, "\n[%sheader]\n", table)
	for _, key := range slices.Sorted(maps.Keys(a.Headers)) {
		t.line(tomledit.Quoted(key), tomledit.Quoted(string(a.Headers[key].Reveal())))
	}
}

// host writes the table of one host. containerd asks the hosts in the order of their tables.
func (t *tree) host(name string, e settings.Endpoint) {
	table := "host." + tomledit.Quoted(e.URL)
	fmt.Fprintf(&t.text, "\n[%s]\n", table)
	t.access(table+".", name, e.Access)
}

func (t *tree) registry(g settings.Registry, r settings.Release) {
	if g.Server.URL != "" {
		t.line("server", tomledit.Quoted(g.Server.URL))
	}
	t.access("", "server", g.Server.Access)
	hosts := g.Mirrors
	if last := len(hosts) - 1; last >= 0 && g.IsServer(hosts[last]) {
		hosts = hosts[:last] // containerd asks the server after the others anyway
	}
	for i, mirror := range hosts {
		t.host(fmt.Sprintf("mirror-%d", i+1), mirror)
	}
	if len(hosts) == 0 && g.Server.URL != "" && !r.Since(2, 0) {
		// Before 2.0, containerd ignores a file without any host.
		t.host("server", g.Server)
	}
}

// RegistryFiles are the files of the registries of a document: of each host its hosts.toml, after the certificates and keys
// that it names. containerd reads them at every pull. Source: docs/hosts.md of containerd.
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
		all = append(append(all, t.beside...), file(at.Join(t.directory, hostsFile), t.text.Bytes(), t.secret))
	}
	return all
}
