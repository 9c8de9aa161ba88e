package launch

import (
	"net/url"
	"strings"
)

// Environment returns the whole environment of a plugin: a fixed PATH, HOME, LANG, and the proxies of lookup without the
// user part of their URLs, because other processes can read an environment.
func Environment(goos string, lookup func(string) (string, bool)) []string {
	env := []string{"LANG=C.UTF-8"}
	if goos == "windows" {
		for _, name := range []string{"SystemRoot", "SystemDrive", "windir", "ProgramData", "ProgramFiles", "TEMP", "TMP", "PATH"} {
			if value, ok := lookup(name); ok {
				env = append(env, name+"="+value)
			}
		}
	} else {
		home := "/root"
		if value, ok := lookup("HOME"); ok && value != "" {
			home = value
		}
		env = append(env, "HOME="+home, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+withoutUser(value))
		}
	}
	return env
}

// withoutUser removes the user part of a proxy's URL, also of a URL that does not parse.
func withoutUser(proxy string) string {
	u, err := url.Parse(proxy)
	if err == nil && u.User != nil {
		u.User = nil
		return u.String()
	}
	if at := strings.LastIndex(proxy, "@"); at >= 0 {
		scheme, _, found := strings.Cut(proxy, "://")
		if !found || len(scheme) > at {
			return proxy[at+1:]
		}
		return scheme + "://" + proxy[at+1:]
	}
	return proxy
}
