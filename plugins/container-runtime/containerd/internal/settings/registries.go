package settings

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/form"
)

// hub is the host of images whose reference names none, hubServer serves them, hubIndex is another name of hub, hubSite and hubHome are its web sites. They
// are no constants, so that no page generated from this source names a real registry.
func hub() string       { return strings.Join([]string{"docker", "io"}, ".") }
func hubServer() string { return "registry-1." + hub() }
func hubIndex() string  { return "index." + hub() }
func hubSite() string   { return "hub." + hubHome() }
func hubHome() string   { return strings.Join([]string{"docker", "com"}, ".") }

func (r *resolver) registries(field document.Path) []Registry {
	var all []Registry
	directories, logins := map[string]document.Path{}, map[string]document.Path{}
	for _, host := range sortedKeys(r.spec.Registries) {
		at := field.Key(host)
		if !r.registryHost(at, host) {
			continue
		}
		directory := r.at.HostDirectory(host)
		if r.at.Windows {
			directory = strings.ToLower(directory)
		}
		twin := directories[directory]
		r.refuse(twin != "", at, "has the same directory as "+string(twin), "keep one of the two: their file names are equal")
		directories[directory] = at
		g := r.registry(at, host, r.spec.Registries[host])
		if g.login != "" {
			twin := logins[g.login]
			r.refuse(twin != "", at+".auth", "is for the same host as "+string(twin), "keep one of the two")
			logins[g.login] = at + ".auth"
		}
		all = append(all, g)
	}
	return all
}

// registryHost checks the key of a registry: containerd compares it with the host of an image, letter by letter. A host
// of a mirror alone may have credentials.
func (r *resolver) registryHost(at document.Path, host string) bool {
	const hint = "write HOST or HOST:PORT as images name it, or " + AnyHost
	if host == AnyHost {
		return true
	}
	if _, err := portOf(host); r.invalid(err, at, hint) {
		return false
	}
	switch {
	case !isRegistryHost(host) && r.isMirror(host):
		only := r.spec.Registries[host]
		only.Auth = nil
		return !r.refuse(!reflect.ValueOf(only).IsZero(), at, "is the host of a mirror and never that of an image: auth is all that counts",
			"remove the rest, or give it to the mirror")
	case !isRegistryHost(host):
		return !r.refuse(true, at, "is never the host of an image: that has a dot or a port, or is localhost", hint)
	case host == hubIndex():
		return !r.refuse(true, at, "is never the host of an image: what is named so is an image of "+hub(), "write "+hub())
	case host == hubSite() || host == hubHome():
		return !r.refuse(true, at, "is a web site and never the host of an image", "write "+hub())
	case host == hubServer():
		r.warn(at, "images of Docker Hub are named by "+hub()+", so that this is for images alone whose reference says "+hubServer())
	}
	return true
}

func (r *resolver) isMirror(host string) bool {
	for _, g := range r.spec.Registries {
		for _, mirror := range g.Mirrors {
			if u, err := url.Parse(mirror.URL); err == nil && u.Host == host {
				return true
			}
		}
	}
	return false
}

func (r *resolver) registry(at document.Path, host string, want v1alpha1.Registry) Registry {
	g := Registry{field: at, Host: host, auth: want.Auth}
	var urls []string
	for i, mirror := range want.Mirrors {
		e := Endpoint{field: (at + ".mirrors").Index(i)}
		e.URL = r.registryURL(e.field+".url", mirror.URL)
		r.apiPath(e.field+".url", e.URL, mirror.OverridePath)
		e.Access = r.access(e.field, mirror.RegistryAccess, e.URL)
		twin := slices.Index(urls, canonicalURL(e.URL))
		r.refuse(e.URL != "" && twin >= 0, e.field+".url", fmt.Sprintf("is the URL of %s", (at+".mirrors").Index(twin)), "keep one of the two")
		g.Mirrors, urls = append(g.Mirrors, e), append(urls, canonicalURL(e.URL))
	}
	g.Server = r.server(at, host, want, g.Mirrors)
	r.uses(at, want, g)
	r.auth(&g)
	return g
}

// server is the host that is asked when no mirror has the image.
func (r *resolver) server(at document.Path, host string, want v1alpha1.Registry, mirrors []Endpoint) Endpoint {
	e := Endpoint{URL: "https://" + host}
	switch {
	case want.Server != "":
		e.field = at + ".server"
		e.URL = r.registryURL(e.field, want.Server)
	case host == AnyHost:
		e.URL = ""
	case host == hub():
		e.URL = "https://" + hubServer()
	}
	if e.URL != "" {
		r.apiPath(cmp.Or(e.field, at+".overridePath"), e.URL, want.OverridePath)
	}
	twin := slices.IndexFunc(mirrors, func(m Endpoint) bool { return canonicalURL(m.URL) == canonicalURL(e.URL) })
	if e.field == "" || e.URL == "" || twin < 0 {
		e.Access = r.access(at, want.RegistryAccess, e.URL)
		return e
	}
	r.refuse(!reflect.ValueOf(want.RegistryAccess).IsZero(), e.field,
		fmt.Sprintf("is the URL of %s, which says how it is reached", (at+".mirrors").Index(twin)),
		"move capabilities, ca, client, skipVerify, overridePath, headers and dialTimeout of the server to that mirror")
	e.Access = mirrors[twin].Access
	return e
}

// registryURL returns a valid URL without its trailing slash, and else the empty string.
func (r *resolver) registryURL(field document.Path, text string) string {
	const hint = "write https://HOST[:PORT][/PATH], or http:// for a registry without TLS"
	if r.refuse(text == "", field, "is empty", hint) {
		return ""
	}
	u, err := checkURL(text, "https", "http")
	if r.invalid(err, field, hint) || r.refuse(u.User != nil, field, "holds a user or a password",
		"remove them from the URL: credentials are given as auth of the registry of that host") {
		return ""
	}
	if r.refuse(slices.Contains([]string{hub(), hubIndex(), hubSite(), hubHome()}, strings.ToLower(u.Host)), field, "is the name of Docker Hub, not the host that serves its images", "write https://"+hubServer()) {
		return ""
	}
	return strings.TrimSuffix(u.String(), "/")
}

// apiPath warns of a URL from which containerd makes the wrong path. containerd appends /v2, unless the path ends with /v2 or overridePath is set.
// Source: core/remotes/docker/config of containerd.
func (r *resolver) apiPath(field document.Path, text string, override bool) {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return
	}
	if strings.Contains(u.Path, ":") {
		r.warn(field, "has the tag of an image in its path, and is the address of a registry: end it before the name of the image")
	}
	version := strings.Contains(u.Path+"/", "/v2/")
	switch {
	case !override && version && !strings.HasSuffix(u.Path, "/v2"):
		r.warn(field, "has /v2 within its path, and containerd appends another one: set overridePath if this is the whole path, or write the path without /v2")
	case override && !version:
		r.warn(field, "has no /v2 in its path, and with overridePath containerd appends none: add it, or remove overridePath")
	}
}

// uses warns of a registry from which containerd pulls less than its author meant. A node pulls by digest and resolves tags; it never pushes.
func (r *resolver) uses(at document.Path, want v1alpha1.Registry, g Registry) {
	may := func(use string, of []string) bool { return len(of) == 0 || slices.Contains(of, use) }
	pulls, resolves := may("pull", g.Server.Access.Capabilities), may("resolve", g.Server.Access.Capabilities)
	for _, m := range g.Mirrors {
		mirrorPulls, mirrorResolves := may("pull", m.Access.Capabilities), may("resolve", m.Access.Capabilities)
		if !mirrorPulls && !mirrorResolves {
			r.warn(m.field+".capabilities", "has neither pull nor resolve, so that the node never uses this mirror: add pull, or remove the mirror")
		}
		pulls, resolves = pulls || mirrorPulls, resolves || mirrorResolves
	}
	switch {
	case !pulls:
		r.warn(at+".capabilities", "has no pull, and no mirror has it, so that no image of this host is pulled: add pull")
	case !resolves:
		r.warn(at+".capabilities", "has no resolve, and no mirror has it, so that images are pulled by digest and never by tag: add resolve")
	}
	if name, port, _ := net.SplitHostPort(g.Host); want.Server == "" && want.CA == "" && want.Client == nil && port != "" && port != "443" &&
		(name == "localhost" || net.ParseIP(name).IsLoopback()) && !r.isMirror(g.Host) {
		r.warn(at, "is asked by https, where containerd without this entry tries http as well: give server: http://"+g.Host+" if it has no TLS")
	}
}

func (r *resolver) auth(g *Registry) {
	if g.auth == nil {
		return
	}
	at, a := g.field+".auth", g.auth
	r.refuse(form.HasControl(a.Username), at+".username", "has control characters", "")
	if strings.Contains(a.Username, ":") {
		r.warn(at+".username", "has a colon, at which a registry with Basic authentication (RFC 7617) ends the name: write the name alone, and what follows as password")
	}
	r.secretText(at+".password", a.Password)
	r.secretText(at+".identityToken", a.IdentityToken)
	r.refuse(g.Server.URL == "" && g.Host == AnyHost && g.Server.field == "", at, "is for one host, and "+AnyHost+" is for all",
		"give the server that it is for, or move it to the registry of that host")
	if u, err := url.Parse(g.Server.URL); err == nil {
		g.login = u.Host
	}
}
