package settings

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// hub is the host of the images whose reference names none, hubServer where that is served, and hubIndex what it is also
// called. They are no constants: a page that is made of this source shall not name a real registry.
func hub() string { return strings.Join([]string{"docker", "io"}, ".") }

func hubServer() string { return "registry-1." + hub() }

func hubIndex() string { return "index." + hub() }

func (r *resolver) registries(field document.Path) []Registry {
	var all []Registry
	mirrors := r.mirrorHosts()
	directories := map[string]document.Path{}
	logins := map[string]document.Path{}
	for _, host := range sortedKeys(r.spec.Registries) {
		at := field.Key(host)
		if !r.registryHost(at, host, mirrors) {
			continue
		}
		directory := r.at.HostDirectory(host)
		if r.at.Windows {
			directory = strings.ToLower(directory)
		}
		if twin, ok := directories[directory]; ok {
			r.refuse(at, "has the same directory as "+string(twin), "keep one of the two: names of files do not tell them apart")
		}
		directories[directory] = at
		g := r.registry(at, host, r.spec.Registries[host])
		if g.login != "" {
			if twin, ok := logins[g.login]; ok {
				r.refuse(at.Field("auth"), "is for the same host as "+string(twin), "keep one of the two")
			}
			logins[g.login] = at.Field("auth")
		}
		all = append(all, g)
	}
	return all
}

// registryHost checks the key of a registry: what stands there is compared with the host of an image, letter by letter.
func (r *resolver) registryHost(at document.Path, host string, mirrors []string) bool {
	const hint = "write HOST or HOST:PORT as images name it, or " + AnyHost
	if host == AnyHost {
		return true
	}
	if _, err := portOf(host); err != nil {
		r.refuse(at, err.Error(), hint)
		return false
	}
	switch {
	case !isRegistryHost(host) && slices.Contains(mirrors, host):
		only := r.spec.Registries[host]
		only.Auth = nil
		if !reflect.ValueOf(only).IsZero() {
			r.refuse(at, "is the host of a mirror and never that of an image: auth is all that counts", "remove the rest, or give it to the mirror")
			return false
		}
	case !isRegistryHost(host):
		r.refuse(at, "is never the host of an image: that has a dot or a port, or is localhost", hint)
		return false
	case host == hubIndex():
		r.refuse(at, "is never the host of an image: what is named so is an image of "+hub(), "write "+hub())
		return false
	case host == hubServer():
		r.warn(at, "images of Docker Hub are named by "+hub()+", so that this is for images alone whose reference says "+hubServer())
	}
	return true
}

// mirrorHosts are the hosts of all mirrors. Their credentials are given as registries of their own.
func (r *resolver) mirrorHosts() []string {
	var hosts []string
	for _, g := range r.spec.Registries {
		for _, mirror := range g.Mirrors {
			if u, err := url.Parse(mirror.URL); err == nil {
				hosts = append(hosts, u.Host)
			}
		}
	}
	return hosts
}

func (r *resolver) registry(at document.Path, host string, want v1alpha1.Registry) Registry {
	g := Registry{field: at, Host: host, auth: want.Auth}
	if reflect.ValueOf(want).IsZero() {
		r.refuse(at, "asks for nothing", "give mirrors, a server, how it is reached or auth, or remove it")
	}
	var urls []string // as containerd tells hosts apart
	for i, mirror := range want.Mirrors {
		e := r.endpoint(at.Field("mirrors").Index(i), mirror.URL, mirror.RegistryAccess)
		g.Mirrors = append(g.Mirrors, e)
		same := sameURL(e.Url)
		if twin := slices.Index(urls, same); e.Url != "" && twin >= 0 {
			r.refuse(e.field.Field("url"), fmt.Sprintf("is the URL of %s", at.Field("mirrors").Index(twin)), "keep one of the two")
		}
		urls = append(urls, same)
	}
	g.Server = r.server(at, host, want, g.Mirrors)
	r.auth(&g)
	return g
}

// server is what is asked when no mirror has the image.
func (r *resolver) server(at document.Path, host string, want v1alpha1.Registry, mirrors []Endpoint) Endpoint {
	if want.Server == "" {
		e := Endpoint{Url: originOf(host)}
		e.Access = r.access(at, want.RegistryAccess, e.Url)
		return e
	}
	field := at.Field("server")
	u, ok := r.registryURL(field, want.Server)
	if !ok {
		r.access(at, want.RegistryAccess, "")
		return Endpoint{field: field}
	}
	e := Endpoint{field: field, Url: strings.TrimSuffix(u.String(), "/")}
	for i, mirror := range mirrors {
		if sameURL(mirror.Url) != sameURL(e.Url) {
			continue
		}
		if !reflect.ValueOf(want.RegistryAccess).IsZero() {
			r.refuse(field, fmt.Sprintf("is the URL of %s, which says how it is reached", at.Field("mirrors").Index(i)),
				"move capabilities, ca, client, skipVerify, overridePath, headers and dialTimeout of the server to that mirror")
		}
		e.Access = mirror.Access
		return e
	}
	e.Access = r.access(at, want.RegistryAccess, e.Url)
	return e
}

// originOf is the URL of a registry that nothing else is said about; empty for every registry.
func originOf(host string) string {
	switch host {
	case AnyHost:
		return ""
	case hub():
		return "https://" + hubServer()
	}
	return "https://" + host
}

func (r *resolver) endpoint(at document.Path, text string, want v1alpha1.RegistryAccess) Endpoint {
	e := Endpoint{field: at}
	if u, ok := r.registryURL(at.Field("url"), text); ok {
		e.Url = strings.TrimSuffix(u.String(), "/")
	}
	e.Access = r.access(at, want, e.Url)
	return e
}

func (r *resolver) registryURL(field document.Path, text string) (*url.URL, bool) {
	const hint = "write https://HOST[:PORT][/PATH], or http:// for a registry without TLS"
	u, err := checkURL(text, "https", "http")
	switch {
	case text == "":
		r.refuse(field, "is empty", hint)
		return nil, false
	case err != nil:
		r.refuse(field, err.Error(), hint)
		return nil, false
	case u.User != nil:
		r.refuse(field, "holds a user or a password", "remove them from the URL: credentials are given as auth of the registry of that host")
		return nil, false
	}
	return u, true
}

func (r *resolver) auth(g *Registry) {
	if g.auth == nil {
		return
	}
	at, a := g.field.Field("auth"), g.auth
	const hint = "give username and password, or identityToken alone"
	switch {
	case !a.IdentityToken.IsZero() && (a.Username != "" || !a.Password.IsZero()):
		r.refuse(at, "has both a password and a token", hint)
	case a.IdentityToken.IsZero() && (a.Username == "" || a.Password.IsZero()):
		r.refuse(at, "has neither username and password nor a token", hint)
	}
	if HasControl(a.Username) {
		r.refuse(at.Field("username"), "has control characters", "")
	}
	r.secretText(at.Field("password"), a.Password)
	r.secretText(at.Field("identityToken"), a.IdentityToken)
	u, err := url.Parse(g.Server.Url)
	switch {
	case g.Server.Url == "" && g.Host == AnyHost && g.Server.field == "":
		r.refuse(at, "is for one host, and "+AnyHost+" stands for all", "give the server that it is for, or move it to the registry of that host")
	case err == nil:
		g.login = u.Host
	}
}
