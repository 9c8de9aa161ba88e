package cloud

import (
	"encoding/hex"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

// ParseURL returns the URL of a field, or its violations, which never quote it. Plain http is permitted with digest: the host
// verifies what is fetched by its SHA-256. It is never permitted with credentials.
func ParseURL(field, text string, digest, credentials bool) (*url.URL, []sdk.Violation) {
	var all []sdk.Violation
	refuse := func(message, hint string) {
		all = append(all, sdk.Violation{Field: field, Message: message, Hint: hint})
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !isHost(u) {
		refuse("is not a URL of https with a host", "write it as https://HOST/PATH; names that are not ASCII are written in punycode")
		return nil, all
	}
	if strings.ContainsAny(text, " {}") {
		refuse("has a blank or a brace, which no URL has", "render the template that it is from, or write %20 for a blank")
	}
	if u.User != nil {
		refuse("holds credentials", "move them to spec.providerConfig")
	}
	if u.Fragment != "" {
		refuse("has a fragment, which no server receives", "remove what follows the #")
	}
	if u.Scheme == "http" && credentials {
		refuse("would send credentials without encryption", "use https, or remove the credentials from spec.providerConfig")
	}
	if u.Scheme == "http" && !digest {
		refuse("is plain http, which does not protect what is sent", "use https; http is only for an object with spec.sha256")
	}
	return u, all
}

// ParseServer returns https://HOST[:PORT] for the HOST[:PORT] in a URI of another scheme, and whether it is one.
func ParseServer(host string) (*url.URL, bool) {
	u, violations := ParseURL("", "https://"+host, false, true)
	return u, len(violations) == 0 && u.Host == host
}

// Domain returns which of the domains the host of a URL is below. An address is below none, nor is a name that ends with a dot.
// Credentials of the machine are for such hosts alone: a document from the network could otherwise have them sent anywhere.
func Domain(u *url.URL, domains ...string) (string, bool) {
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || u.User != nil || !isHost(u) {
		return "", false
	}
	i := slices.IndexFunc(domains, func(domain string) bool { return strings.HasSuffix(host, "."+domain) })
	if i < 0 {
		return "", false
	}
	return domains[i], true
}

// SameServer reports whether two URLs have the same scheme, host and port.
func SameServer(a, b *url.URL) bool { return origin(a) == origin(b) }

// isHost reports whether the URL has the name or the address of a host, so that an error can name it. Only the address of a link has
// a zone: the kernel ignores others.
func isHost(u *url.URL) bool {
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
	}
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Zone() == "" || a.IsLinkLocalUnicast() && regexp.MustCompile(`^[A-Za-z0-9._-]*$`).MatchString(a.Zone())
	}
	if regexp.MustCompile(`(^|\.)([0-9]+|0[xX][0-9A-Fa-f]*)\.?$`).MatchString(host) { // other programs, such as a proxy, read it as an IPv4 address
		return false
	}
	const label = `[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?`
	return len(host) < 254 && regexp.MustCompile(`^`+label+`(\.`+label+`)*\.?$`).MatchString(host)
}

// origin is the scheme, host and port of a URL.
func origin(u *url.URL) string {
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port(u)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	case u.Scheme == "socks5", u.Scheme == "socks5h": // of a proxy
		return "1080"
	}
	return "443"
}

// isLocal reports whether an address is of this machine, of its link, or of a metadata service outside of the range for links. An IPv6
// address with one of IPv4 in its last 32 bits counts as the latter too: NAT64 (RFC 6052) and the deprecated form ::a.b.c.d. All
// addresses of other transitions, and of sites, are local: a gateway of the network gives them their meaning.
func isLocal(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, prefix := range []string{"64:ff9b::/96", "::/96"} {
		if bytes := a.As16(); a.Is6() && netip.MustParsePrefix(prefix).Contains(a) {
			a = netip.AddrFrom4([4]byte(bytes[12:]))
		}
	}
	// NAT64 of RFC 8215, 6to4, Teredo, site-local, and "this network".
	for _, prefix := range []string{"64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10", "0.0.0.0/8"} {
		if netip.MustParsePrefix(prefix).Contains(a) {
			return true
		}
	}
	switch a.String() {
	case "fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192":
		return true
	}
	return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast()
}

// Escaped returns a path as S3 and Google Cloud Storage sign it: every byte but [A-Za-z0-9._~/-] as % and two upper-case hexadecimal digits.
func Escaped(path string) string {
	var out strings.Builder
	for _, b := range []byte(path) {
		if 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-._~/", b) >= 0 {
			out.WriteByte(b)
			continue
		}
		out.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	return out.String()
}
