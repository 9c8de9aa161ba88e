package sysctld

import "testing"

func TestMatchPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"net/ipv4/conf/*/rp_filter", "net/ipv4/conf/eth0/rp_filter", true},
		{"net/ipv4/*/rp_filter", "net/ipv4/conf/eth0/rp_filter", false},
		{"net/*", "net/ipv4/ip_forward", false},
		{"net/ipv4/conf/eth?/x", "net/ipv4/conf/eth0/x", true},
		{"net/ipv4/conf/eth?/x", "net/ipv4/conf/eth/x", false},
		{"net/ipv4/conf/eth[0-3]/x", "net/ipv4/conf/eth2/x", true},
		{"net/ipv4/conf/eth[0-3]/x", "net/ipv4/conf/eth4/x", false},
		{"net/ipv4/conf/eth[!0-3]/x", "net/ipv4/conf/eth4/x", true},
		{"net/ipv4/conf/eth[^0]/x", "net/ipv4/conf/eth0/x", false},
		{"net/ipv4/conf/eth[]0]/x", "net/ipv4/conf/eth]/x", true},
		{"net/ipv4/conf/eth[0-]/x", "net/ipv4/conf/eth-/x", true},
		{"net/ipv4/conf/eth[[:digit:]]/x", "net/ipv4/conf/eth7/x", true},
		{"net/ipv4/conf/eth[[:alpha:]_]/x", "net/ipv4/conf/eth7/x", false},
		{"net/ipv4/conf/[x/x", "net/ipv4/conf/[x/x", true},
		{`net/ipv4/conf/\*/x`, "net/ipv4/conf/*/x", true},
		{`net/ipv4/conf/\*/x`, "net/ipv4/conf/eth0/x", false},
		{"*/*", "kernel/panic", true},
		{"kernel/*a*i*", "kernel/panic", true},
		{"kernel/*a*z*", "kernel/panic", false},
		{"kernel/panic*", "kernel/panic", true},
		{"kernel/{panic,sysrq}*", "kernel/panic", false},
	} {
		if got := matchPath(c.pattern, compileGlob(c.pattern), c.path); got != c.want {
			t.Errorf("matchPath(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
}

func TestCompileGlobMatchesSlashes(t *testing.T) {
	t.Parallel()
	if !compileGlob("net/*/rp_filter").MatchString("net/ipv4/conf/eth0/rp_filter") {
		t.Error("fnmatch(3) without FNM_PATHNAME lets * match a slash")
	}
}

func FuzzCompileGlob(f *testing.F) {
	f.Add("net/*/[a-z]?", "net/ipv4/a1")
	f.Add("[", "[")
	f.Add("[[:digit:]", "5")
	f.Add(`\`, `\`)
	f.Add("*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if !compileGlob(pattern+"*").MatchString(text) && compileGlob(pattern).MatchString(text) && !isGlob(pattern) && pattern != "" &&
			pattern[len(pattern)-1] != '\\' {
			t.Fatalf("%q matches %q, but not followed by *", pattern, text)
		}
	})
}
