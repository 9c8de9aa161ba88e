package cloudtest

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// servers are spellings of https://HOST that can name another server than they seem to. HOST is the host of a service, and DOMAIN what
// follows its first label. No credentials of the machine may be sent to one of them.
func servers() map[string]string {
	return map[string]string{
		"another host":                 "https://evil.example",
		"zone":                         "https://[2001:db8::1%25x.HOST]",
		"zone of the domain":           "https://[2001:db8::1%25x.DOMAIN]",
		"zone of a link-local address": "https://[fe80::1%25x.HOST]",
		"user":                         "https://HOST@evil.example",
		"user and password":            "https://HOST:443@evil.example",
		"user of the service":          "https://evil.example@HOST",
		"trailing dot":                 "https://HOST.",
		"trailing dot of another host": "https://HOST.evil.example.",
		"longer":                       "https://HOST.evil.example",
		"suffix without a dot":         "https://evilDOMAIN",
		"empty label":                  "https://evil..DOMAIN",
		"Cyrillic letter":              "https://HOSTа",
		"full stop of East Asia":       "https://evil。DOMAIN",
		"punycode":                     "https://xn--DOMAIN",
		"percent-encoded dot":          "https://evil%2eDOMAIN",
		"percent-encoded slash":        "https://evil.example%2f.HOST",
		"percent-encoded fragment":     "https://evil.example%23.HOST",
		"percent-encoded zero":         "https://evil.example%00.HOST",
		"backslash":                    `https://evil.example\.HOST`,
		"backslash and user":           `https://evil.example\@HOST`,
		"fragment":                     "https://evil.example#.HOST",
		"fragment of the service":      "https://HOST#.evil.example",
		"query":                        "https://evil.example?.HOST",
		"path":                         "https://evil.example/.HOST",
		"port zero":                    "https://HOST:0",
		"port too large":               "https://HOST:65979",
		"name in the port":             "https://evil.example:443.HOST",
		"tabulator":                    "https://evil.example\t.HOST",
		"line feed":                    "https://evil.example\n.HOST",
		"space":                        "https://evil.example .HOST",
		"plain http":                   "http://HOST",
		"three slashes":                "https:///HOST",
		"IPv4 address":                 "https://192.0.2.1",
		"IPv4 as a number":             "https://2130706433",
		"IPv4 in hexadecimal":          "https://0x7f000001",
		"IPv4 in octal":                "https://0177.0.0.1",
		"IPv4 with two parts":          "https://127.1",
		"IPv6 address":                 "https://[2001:db8::1]",
		"IPv4 mapped to IPv6":          "https://[::ffff:169.254.169.254]",
		"NAT64":                        "https://[64:ff9b::a9fe:a9fe]",
		"local NAT64":                  "https://[64:ff9b:1::a9fe:a9fe]",
		"6to4":                         "https://[2002:a9fe:a9fe::1]",
		"Teredo":                       "https://[2001:0:a9fe:a9fe::1]",
		"site-local":                   "https://[fec0::1]",
	}
}

// Tricks calls refused with every spelling of a server that is not the one of a service, whose host it is given. It requires that
// refused reports true, and false for the spellings of the host itself.
func Tricks(t *testing.T, host string, refused func(server string) bool) {
	t.Helper()
	for name, server := range spelled(host) {
		if !refused(server) {
			t.Errorf("%s: credentials of the machine are for %q", name, server)
		}
	}
	for _, server := range []string{"https://" + host, "https://" + strings.ToUpper(host), "https://" + host + ":443"} {
		if refused(server) {
			t.Errorf("%q is refused, which is the service", server)
		}
	}
}

// OneMeaning requires that a server which parse accepts is the one that every other program reads in the same text. It is for
// plugins whose documents bring the credentials, and so choose any server.
func OneMeaning(t *testing.T, parse func(server string) (*url.URL, bool)) {
	t.Helper()
	for name, server := range spelled("service.example") {
		u, ok := parse(server)
		if !ok {
			continue
		}
		host, _, _ := strings.Cut(strings.TrimPrefix(server, u.Scheme+"://"), "/")
		host, _, _ = strings.Cut(host, "?")
		_, zone := strings.CutPrefix(host, "[fe80::1%25") // has an escape, and the meaning of the machine
		if u.User != nil || u.Host != host && !zone || !zone && !regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$|^\[[0-9a-f:.]+\]$`).MatchString(host) {
			t.Errorf("%s: %q is accepted as %q", name, server, u.Host)
		}
	}
}

func spelled(host string) map[string]string {
	all := servers()
	_, domain, _ := strings.Cut(host, ".")
	for name, text := range all {
		all[name] = strings.NewReplacer("HOST", host, "DOMAIN", domain).Replace(text)
	}
	return all
}
