package cloud

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://a.example":                    "",
		"https://a.example/x%20y?c4n4ry=1":     "",
		"https://a_b.example.:8443/x":          "",
		"https://192.0.2.1/x":                  "",
		"https://[2001:db8::1]:443/x":          "",
		"https://[fe80::1%25eth0]/x":           "",
		"HTTPS://A.EXAMPLE":                    "",
		"http://a.example":                     "is plain http",
		"http://c4n4ry@a.example":              "holds credentials, is plain http",
		"https://c4n4ry:c4n4ry@a.example/":     "holds credentials",
		"https://a.example/#c4n4ry":            "has a fragment",
		"ftp://c4n4ry.example":                 "is not a URL",
		"a.example/c4n4ry":                     "is not a URL",
		"https:///c4n4ry":                      "is not a URL",
		"https:c4n4ry":                         "is not a URL",
		"https://a.example:0/":                 "is not a URL",
		"https://a.example:65536/":             "is not a URL",
		"https://a.example:c4n4ry/":            "is not a URL",
		"https://c4n4ry!.example":              "is not a URL",
		"https://c4n4ry%0a.example":            "is not a URL",
		"https://" + strings.Repeat("a", 64):   "is not a URL",
		"https://" + strings.Repeat("a.", 127): "is not a URL",
		"https://-c4n4ry.example":              "is not a URL",
		"https://a..example":                   "is not a URL",
		"https://übung.example":                "is not a URL",
		"https://a.example\n/c4n4ry":           "is not a URL",
		"https://[2001:db8::1%25c4n4ry]/":      "is not a URL", // the kernel ignores the zone
		"https://2130706433/c4n4ry":            "is not a URL", // an IPv4 address for other parsers
		"https://0x7f000001/c4n4ry":            "is not a URL",
		"https://0177.0.0.1/c4n4ry":            "is not a URL",
		"https://127.1/c4n4ry":                 "is not a URL",
		"https://127.0.0.0x1/c4n4ry":           "is not a URL",
		"https://192.0.2.1./c4n4ry":            "is not a URL",
		"https://[fe80::1%25c4n4ry%0a]/":       "is not a URL",
		"https://[c4n4ry]/":                    "is not a URL",
	} {
		_, all := ParseURL("spec.uri", text, false, false)
		var messages []string
		for _, v := range all {
			assert.Equal(t, "spec.uri", v.Field)
			assert.NotContains(t, v.Message+v.Hint, "c4n4ry")
			messages = append(messages, v.Message)
		}
		assert.Len(t, messages, len(strings.Split(want, ", "))-map[bool]int{true: 1}[want == ""], text)
		for i, part := range strings.Split(want, ", ") {
			if i < len(messages) {
				assert.True(t, strings.HasPrefix(messages[i], part), "%s: %q", text, messages)
			}
		}
	}
	_, all := ParseURL("spec.uri", "http://a.example", true, false)
	assert.Empty(t, all)
	_, all = ParseURL("spec.uri", "http://a.example", true, true)
	assert.Len(t, all, 1)
	_, all = ParseURL("spec.uri", "http://a.example", false, true)
	assert.Len(t, all, 2)
}

// FuzzParseURL: what is accepted has a host that an error can name, and no violation quotes the text.
func FuzzParseURL(f *testing.F) {
	f.Add("https://a.example:443/c4n4ry?x#y")
	f.Add("http://[::1%25c4n4ry]:1/")
	f.Add("https://user:c4n4ry@a_b./")
	f.Fuzz(func(t *testing.T, text string) {
		u, all := ParseURL("spec.uri", text, true, false)
		for _, v := range all {
			if strings.Contains(v.Message+v.Hint, "c4n4ry") {
				t.Errorf("%q is quoted in %+v", text, v)
			}
		}
		if u == nil && len(all) == 0 || u != nil && (u.Hostname() == "" || strings.ContainsAny(hostPort(u), "/ @\n\x00\"")) {
			t.Errorf("%q is accepted as %v", text, u)
		}
	})
}

func TestParseServer(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"a.example": true, "a.example:6443": true, "[::1]:6443": true, "192.0.2.1": true, "": false, "a?b": false, "a#b": false, "a/": false, "a:0": false,
		"me@a": false, "a%41": false, "http://a": false, "a b": false,
	} {
		u, ok := ParseServer(host)
		assert.Equal(t, want, ok, host)
		if ok {
			assert.Equal(t, "https://"+host, u.String())
		}
	}
}

func TestDomain(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"a.vault.azure.net": true, "A.Vault.Azure.Net:443": true, "vault.azure.net": false, "a.vault.azure.net.example": false, "avault.azure.net": false,
		"[2001:db8::1%x.vault.azure.net]": false, "[fe80::1%x.vault.azure.net]": false, "a.vault.azure.net.": false, "a@b.vault.azure.net": false,
	} {
		_, ok := Domain(&url.URL{Host: host}, "other", "vault.azure.net")
		assert.Equal(t, want, ok, host)
	}
}
