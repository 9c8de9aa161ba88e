package v1alpha1

import (
	"errors"
	"strings"
)

const (
	lowerCase = "abcdefghijklmnopqrstuvwxyz"
	letters   = lowerCase + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits    = "0123456789"
	// The characters of a URI: unreserved, gen-delims, sub-delims and %. None of them is escaped in JSON.
	uriCharacters = letters + digits + "-._~" + ":/?#[]@" + "!$&'()*+,;=" + "%"
)

// PassphraseURI is the passphraseURI of an EncryptedConfig in its parts, SCHEME://[ENCRYPTED@]LOCATION. Each provider defines the
// form of the last two; nothing is decoded. Source: RFC 3986 for the scheme and the characters, but not for what follows "://":
// net/url refuses the colons of an Amazon Resource Name as an invalid port.
type PassphraseURI struct {
	Scheme    string // lower case, such as kms
	Encrypted string // the encrypted passphrase, which can contain "@"; "" where LOCATION has the passphrase itself
	Location  string // the key that decrypts it, or where the passphrase is, without "@"; never empty
}

// ParsePassphraseURI splits uri at the first "://", and what follows it at the last "@". The error does not quote uri.
func ParsePassphraseURI(uri string) (PassphraseURI, error) {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || !isScheme(scheme) {
		return PassphraseURI{}, errors.New("must begin with a scheme in lower case and ://, such as kms://")
	}
	if strings.Trim(rest, uriCharacters) != "" {
		return PassphraseURI{}, errors.New("must contain only the characters of a URI; others are written as % and two hexadecimal digits")
	}
	u := PassphraseURI{Scheme: scheme, Location: rest}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		u.Encrypted, u.Location = rest[:at], rest[at+1:]
		if u.Encrypted == "" {
			return PassphraseURI{}, errors.New("must have an encrypted passphrase before the last @, or no @ at all")
		}
	}
	if u.Location == "" {
		return PassphraseURI{}, errors.New("must have a location at its end, such as the name of a key")
	}
	return u, nil
}

// String returns the URI.
func (u PassphraseURI) String() string {
	if u.Encrypted == "" {
		return u.Scheme + "://" + u.Location
	}
	return u.Scheme + "://" + u.Encrypted + "@" + u.Location
}

func isScheme(s string) bool {
	return s != "" && strings.Contains(lowerCase, s[:1]) && strings.Trim(s, lowerCase+digits+"+-.") == ""
}
