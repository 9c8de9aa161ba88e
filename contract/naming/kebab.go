package naming

// Kebab converts a CamelCase kind of ASCII letters and digits to kebab-case. A word starts
//
//   - at a capital after a lower-case letter or a digit: FooBar is foo-bar, S3Source is s3-source;
//   - at a capital between a capital and a lower-case letter, which keeps acronyms whole:
//     HTTPProxy is http-proxy, OSUpdate is os-update, NTP is ntp.
//
// A digit belongs to the word before it. There are no exceptions, which makes the rule easy to port: IPv6Address is
// i-pv6-address, and ipv6-address requires the kind IPV6Address or Ipv6Address. Kinds that differ only in case can share a
// name (HTTPProxy, HttpProxy) and then a binary, which receives the kind with each document.
func Kebab(kind string) string {
	out := make([]byte, 0, len(kind)+8)
	for i := range len(kind) {
		c := kind[i]
		if isUpper(c) {
			if i > 0 && (!isUpper(kind[i-1]) || i+1 < len(kind) && isLower(kind[i+1])) {
				out = append(out, '-')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// isKebab reports whether s can be the kebab-case of a kind: words that start with a letter, joined by single dashes.
func isKebab(s string) bool {
	start := true
	for i := range len(s) {
		switch c := s[i]; {
		case start && !isLower(c):
			return false
		case c == '-':
			start = true
		case isLower(c) || isDigit(c):
			start = false
		default:
			return false
		}
	}
	return !start
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
