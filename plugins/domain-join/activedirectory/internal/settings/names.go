package settings

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/go-ldap/ldap/v3"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/lazyregexp"
)

// The forms of names. That of an account is NetBIOS', with the characters that a DNS label has as well.
var (
	account   = lazyregexp.New(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,13}[A-Za-z0-9])?$`)
	principal = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*/([A-Za-z0-9.-]+)(?::[A-Za-z0-9_$#-]+)?(?:/[!-.0-?A-\[\]-~]+)?$`)
)

const maxAccount = 15

// isDNSName reports whether text is a DNS name, and no IPv4 address.
func isDNSName(text string) bool {
	last := text[strings.LastIndexByte(text, '.')+1:]
	return v1alpha1.IsHostName(text) && !onlyDigits(last)
}

// isQualified reports whether text is a DNS name of two labels or more.
func isQualified(text string) bool { return isDNSName(text) && strings.Contains(text, ".") }

func onlyDigits(text string) bool { return strings.Trim(text, "0123456789") == "" }

// isLocalhost reports whether text is the name of the machine for itself. Source: RFC 6761, and hosts(5) of distributions.
func isLocalhost(text string) bool {
	label, domain, _ := strings.Cut(strings.ToLower(text), ".")
	return label == "localhost" && (domain == "" || strings.HasPrefix(domain, "localdomain"))
}

// isAccount reports whether text is the name of a computer's account. Windows refuses one of digits alone.
func isAccount(text string) bool { return account().MatchString(text) && !onlyDigits(text) }

// accountOf makes the name of an account from the first label of a host name. One that is too long is cut, and the hash of the
// fqdn distinguishes it from others with the same beginning.
func accountOf(label, fqdn string) string {
	name := strings.ToUpper(label)
	if len(name) <= maxAccount {
		return name
	}
	hash := sha256.Sum256([]byte(fqdn))
	return strings.TrimRight(name[:10], "-") + "-" + base32.StdEncoding.EncodeToString(hash[:])[:4]
}

// isPrincipal reports whether text is SERVICE/HOST[:PORT][/NAME]. Instead of a port there can be the name of an instance, as that
// of a Microsoft SQL Server. What Kerberos would have to escape is not accepted. Source: [MS-ADTS] 5.1.1.4.
func isPrincipal(text string) bool {
	parts := principal().FindStringSubmatch(text)
	return len(text) <= 255 && parts != nil && isDNSName(parts[1])
}

// isUnitOf reports whether text is the distinguished name of a unit or container of the domain.
func isUnitOf(text, domain string) bool {
	dn, err := ldap.ParseDN(text)
	labels := strings.Split(domain, ".")
	if err != nil || len(dn.RDNs) <= len(labels) {
		return false
	}
	above := len(dn.RDNs) - len(labels)
	for i, rdn := range dn.RDNs {
		first := rdn.Attributes[0]
		isDC := len(rdn.Attributes) == 1 && strings.EqualFold(first.Type, "DC")
		if first.Value == "" || isDC != (i >= above) || isDC && !strings.EqualFold(first.Value, labels[i-above]) {
			return false
		}
	}
	kind := dn.RDNs[0].Attributes[0].Type
	return strings.EqualFold(kind, "OU") || strings.EqualFold(kind, "CN")
}

// suffixOf returns the end of every distinguished name of the domain.
func suffixOf(domain string) string { return "DC=" + strings.ReplaceAll(domain, ".", ",DC=") }
