package timeservers

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// Key is a symmetric key of a server and its clients.
type Key struct {
	ID     int
	Type   string // as chrony calls it, see KeyTypes
	Secret string // hexadecimal
}

// KeyTypes lists the types that chrony and ntpsec share.
func KeyTypes() []string { return []string{"MD5", "SHA1", "AES128"} }

// NewKey makes a key. AES128 wants exactly 16 bytes, which is long enough for the others.
func NewKey(id int, kind string) Key {
	var secret [16]byte
	rand.Read(secret[:]) // never returns an error
	return Key{ID: id, Type: kind, Secret: hex.EncodeToString(secret[:])}
}

// Chrony is the key's line in the file of chrony's keyfile directive.
func (k Key) Chrony() string { return fmt.Sprintf("%d %s HEX:%s\n", k.ID, k.Type, k.Secret) }

// NTPsec is the key's line in the file of ntpsec's keys directive, where AES128 is called AES-128.
func (k Key) NTPsec() string {
	return fmt.Sprintf("%d %s %s\n", k.ID, strings.Replace(k.Type, "AES", "AES-", 1), k.Secret)
}
