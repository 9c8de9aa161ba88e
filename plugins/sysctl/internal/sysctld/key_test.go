package sysctld

import (
	"strings"
	"testing"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Key{
		"net.ipv4.ip_forward":                 "net/ipv4/ip_forward",
		"net/ipv4/ip_forward":                 "net/ipv4/ip_forward",
		"net.ipv4.conf.eth0/100.rp_filter":    "net/ipv4/conf/eth0.100/rp_filter",
		"net/ipv4/conf/eth0.100/rp_filter":    "net/ipv4/conf/eth0.100/rp_filter",
		"net/ipv4/conf/a.b.c/rp_filter":       "net/ipv4/conf/a.b.c/rp_filter",
		"kernel.panic":                        "kernel/panic",
		"net.ipv4.conf.br-lan.rp_filter":      "net/ipv4/conf/br-lan/rp_filter",
		"net.ipv4.conf.\u00e9th0/1.rp_filter": "net/ipv4/conf/\u00e9th0.1/rp_filter",
	} {
		got, err := ParseKey(text)
		if err != nil || got != want {
			t.Errorf("ParseKey(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "empty segment",
		".":                      "empty segment",
		"net..ipv4":              "empty segment",
		".net.ipv4":              "empty segment",
		"/net/ipv4":              "empty segment",
		"net.ipv4.":              "empty segment",
		"net//ipv4":              "empty segment",
		"net/../kernel/panic":    "segments . and ..",
		"net/./ipv4":             "segments . and ..",
		"net.ipv4.//.x":          "segments . and ..", // interchanged: net/ipv4/../x
		"net.ipv4./.x":           "segments . and ..",
		"kernel.panic\n":         "control characters",
		"kernel.\x00panic":       "control characters",
		"kernel.\x7fpanic":       "control characters",
		"kernel.\u0085panic":     "control characters",
		"kernel panic":           "white space",
		"kernel.\u00a0panic":     "white space",
		"kernel.panic=1":         "= sign",
		"net.ipv4.conf.*.x":      "wildcards",
		"net.ipv4.conf.[ab].x":   "wildcards",
		"net.ipv4.conf.eth?.x":   "wildcards",
		"-kernel.panic":          "does not begin",
		"#kernel.panic":          "does not begin",
		";kernel.panic":          "does not begin",
		"panic":                  "two segments",
		strings.Repeat("a", 300): "two segments",
	} {
		key, err := ParseKey(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseKey(%q) = %q, %v; want an error with %q", text, key, err, want)
		}
	}
}

func TestKeyString(t *testing.T) {
	t.Parallel()
	for key, want := range map[Key]string{
		"net/ipv4/ip_forward":              "net.ipv4.ip_forward",
		"net/ipv4/conf/eth0.100/rp_filter": "net.ipv4.conf.eth0/100.rp_filter",
	} {
		if got := key.String(); got != want {
			t.Errorf("%q.String() = %q, want %q", string(key), got, want)
		}
		if back, err := ParseKey(key.String()); err != nil || back != key {
			t.Errorf("%q is not the result of parsing %q: %q, %v", string(key), key.String(), back, err)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"net.ipv4.ip_forward", "net/ipv4/conf/eth0.100/rp_filter", "a.b/c", "a/b.c", "..", "net./.x", "a.\xff", "-a.b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseKey(text)
		if err != nil {
			return
		}
		for segment := range strings.SplitSeq(string(key), "/") {
			if segment == "" || segment == "." || segment == ".." {
				t.Fatalf("%q gave the segment %q", text, segment)
			}
		}
		if back, err := ParseKey(key.String()); err != nil || back != key {
			t.Fatalf("%q: %q is not the result of parsing %q: %q, %v", text, string(key), key.String(), back, err)
		}
		if simplify(interchange(text)) != string(key) {
			t.Fatalf("%q: a file would mean %q, not %q", text, interchange(text), string(key))
		}
	})
}
