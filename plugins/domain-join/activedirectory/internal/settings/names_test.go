package settings

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
)

func TestAccountOf(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]string{
		"a": "A", "node-1": "NODE-1", "exactly-15-chars": "EXACTLY-15-USWV", "fifteen-letters": "FIFTEEN-LETTERS",
		"control-plane-1":   "CONTROL-PLANE-1",
		"control-plane-01":  "CONTROL-PL-GTYY",
		"control-plane-02":  "CONTROL-PL-2PDY",
		"machines-a-node-1": "MACHINES-A-44SS",
		"machines--node-12": "MACHINES-UEUR", // no hyphen is doubled
		"1234567890123456":  "1234567890-QOG2",
	} {
		got := accountOf(label, label+".ad.example.com")
		assert.Equal(t, want, got, label)
		assert.True(t, isAccount(got), label)
	}
	assert.NotEqual(t, accountOf("control-plane-01", "control-plane-01.a.example.com"), accountOf("control-plane-01", "control-plane-01.b.example.com"))
}

func TestIsAccount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"A": true, "node-1": true, "1a": true, "1-1": true, "FIFTEEN-LETTERS": true,
		"": false, "SIXTEEN-LETTERS-": false, "SIXTEEN--LETTERS": false, "-a": false, "a-": false, "123": false, "a.b": false, "a_b": false,
		"a$": false, "\u212a": false, "ä": false, "a\n": false,
	} {
		assert.Equal(t, want, isAccount(name), name)
	}
}

func TestIsDNSName(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	for name, want := range map[string]bool{
		"dc1": true, "DC1.ad.example.com": true, "1.example": true, label + ".example": true, "xn--bcher-kva.example": true,
		"": false, ".": false, "a.": false, ".a": false, "a..b": false, "192.0.2.1": false, "1": false, "2001:db8::1": false, "a_b.example": false,
		label + "a.example": false, strings.Repeat(label+".", 4) + "example": false, "-a.example": false, "a-.example": false, "a b": false,
	} {
		assert.Equal(t, want, isDNSName(name), name)
	}
}

func TestIsPrincipal(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"HTTP/node.example.com": true, "HTTP/node": true, "http/node.example.com:8080": true, "MSSQLSvc/sql.example.com:INST$1": true,
		"ldap/dc.example.com/ad.example.com": true, "ldap/dc.example.com:389/CN=x,DC=y": true, "E3514235-4B06-11D1-AB04-00C04FC2DCD2/a.example": true,
		"": false, "HTTP": false, "HTTP/": false, "/a": false, "HTTP/a/": false, "HTTP/a:": false, "HTTP/a/b/c": false, "HTTP/a b": false,
		"HTTP/a@EXAMPLE.COM": false, `HTTP/a\b`: false, "HTTP/192.0.2.1": false, "HTTP/a/\u00e4": false, "HTTP/a\n": false,
		"HTTP/a/" + strings.Repeat("x", 255): false,
	} {
		assert.Equal(t, want, isPrincipal(name), name)
	}
}

func TestIsUnitOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"OU=Nodes,DC=ad,DC=example,DC=com": true, "ou=Nodes, dc=AD, dc=Example, dc=com": true, "CN=Computers,DC=ad,DC=example,DC=com": true,
		`OU=a\,b,OU=c,DC=ad,DC=example,DC=com`: true, "OU=ä,DC=ad,DC=example,DC=com": true,
		"": false, "OU=Nodes": false, "DC=ad,DC=example,DC=com": false, "OU=Nodes,DC=example,DC=com": false, "OU=,DC=ad,DC=example,DC=com": false,
		"OU=Nodes,DC=sub,DC=ad,DC=example,DC=com": false, "OU=Nodes,DC=ad,DC=example,DC=org": false, "O=Nodes,DC=ad,DC=example,DC=com": false,
		"OU=Nodes,DC=ad+DC=x,DC=example,DC=com": false, "Nodes,DC=ad,DC=example,DC=com": false, "ad.example.com/Nodes": false,
		"OU=DC,OU=x,OU=example,OU=com": false,
	} {
		assert.Equal(t, want, isUnitOf(name, "ad.example.com"), name)
	}
}

// FuzzAccountOf: the name of every host is a valid name of an account, unless it has only digits.
func FuzzAccountOf(f *testing.F) {
	for _, seed := range []string{"a", "node-1", "machines--node-12", "a---------------b", "1234567890123456", strings.Repeat("a", 63)} {
		f.Add(seed, seed+".example.com")
	}
	f.Fuzz(func(t *testing.T, label, fqdn string) {
		if !isDNSName(label) || strings.Contains(label, ".") {
			return
		}
		got := accountOf(label, fqdn)
		if !isAccount(got) || got != strings.ToUpper(got) || len(label) <= maxAccount && !strings.EqualFold(got, label) {
			t.Fatalf("%q", got)
		}
	})
}

// FuzzIsPrincipal: what is accepted has two or three parts of printable ASCII, which Kerberos has to escape nowhere.
func FuzzIsPrincipal(f *testing.F) {
	for _, seed := range []string{"HTTP/a", "HTTP/a.example:80", "ldap/a:1/b", "a/b/c/d", "a/b@c", `a/b\c`, "a//b", "HTTP/192.0.2.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !isPrincipal(text) {
			return
		}
		parts := strings.Split(text, "/")
		odd := func(r rune) bool {
			return r > unicode.MaxASCII || !unicode.IsGraphic(r) || strings.ContainsRune(` @\`, r)
		}
		host, _, _ := strings.Cut(parts[1], ":")
		if len(parts) > 3 || slices.Contains(parts, "") || strings.ContainsFunc(text, odd) || !isDNSName(host) {
			t.Fatalf("%q", text)
		}
	})
}

// FuzzIsUnitOf: what is accepted ends in the domain.
func FuzzIsUnitOf(f *testing.F) {
	for _, seed := range []string{"OU=a,DC=b,DC=c", `OU=a\,DC=b,DC=c`, "CN=#0401,DC=b,DC=c", "OU=a+CN=b,DC=b,DC=c", "OU=a;DC=b;DC=c", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if isUnitOf(text, "b.c") && !strings.Contains(strings.ToLower(text), "dc") {
			t.Fatalf("%q", text)
		}
	})
}
