package launch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/launch"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

func TestEnvironmentIsConstructed(t *testing.T) {
	t.Parallel()
	host := map[string]string{
		"HOME": "/home/u", "PATH": "/evil", "LANG": "de_DE", "LD_PRELOAD": "/evil.so", "AWS_SECRET_ACCESS_KEY": "canary",
		"ALL_PROXY": "canary", "NO_PROXY": "10.0.0.0/8,.local", "https_proxy": "http://proxy:3128",
	}
	got := launch.Environment("linux", lookup(host))
	want := []string{
		"LANG=C.UTF-8", "HOME=/home/u", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"NO_PROXY=10.0.0.0/8,.local", "https_proxy=http://proxy:3128",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
	if got := launch.Environment("linux", lookup(nil)); !slices.Contains(got, "HOME=/root") {
		t.Errorf("environment %q, want a home", got)
	}
	got = launch.Environment("windows", lookup(map[string]string{"SystemRoot": `C:\Windows`, "USERNAME": "canary", "TEMP": `C:\T`}))
	if want := []string{"LANG=C.UTF-8", `SystemRoot=C:\Windows`, `TEMP=C:\T`}; !slices.Equal(got, want) {
		t.Errorf("environment %q, want %q", got, want)
	}
}

// TestProxyCredentials: other processes can read an environment.
func TestProxyCredentials(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"http://proxy:3128":                      "http://proxy:3128",
		"http://canary:canary@proxy:3128":        "http://proxy:3128",
		"http://canary@proxy:3128/":              "http://proxy:3128/",
		"canary:canary@proxy:3128":               "proxy:3128",
		"http://canary:can%ary@proxy:3128":       "http://proxy:3128",
		"http://canary:can@ary@proxy:3128":       "http://proxy:3128",
		"http://canary:canary/1@proxy:3128":      "http://proxy:3128",
		"http://canary:can ary@proxy:3128":       "http://proxy:3128",
		"socks5://canary:canary@[2001:db8::1]:1": "socks5://[2001:db8::1]:1",
		"proxy:3128":                             "proxy:3128",
		"":                                       "",
	} {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy"} {
			got := launch.Environment("linux", lookup(map[string]string{name: given}))
			if !slices.Contains(got, name+"="+want) || strings.Contains(strings.Join(got, " "), "canary") {
				t.Errorf("%s=%s becomes %q, want %s", name, given, got, want)
			}
		}
	}
}
