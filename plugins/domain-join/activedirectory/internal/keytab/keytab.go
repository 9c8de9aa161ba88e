// Package keytab reads and writes files with the keys of Kerberos accounts: version 2 of the format that MIT Kerberos documents.
package keytab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
)

// Entry is a key under one name.
type Entry struct {
	// Principal is such as host/node.example.com@EXAMPLE.COM.
	Principal string
	// Version numbers the keys of an account.
	Version uint32
	Key     kerberos.Key

	// body is the entry in the file, with what only other programs read.
	body []byte
}

// New returns an entry for a name of an account.
func New(principal string, version uint32, now time.Time, key kerberos.Key) Entry {
	const ordinary = 1 // the type of the name
	at := strings.LastIndexByte(principal, '@')
	components := strings.Split(principal[:at], "/")
	body := binary.BigEndian.AppendUint16(nil, uint16(len(components))) //nolint:gosec // of a name
	for _, text := range append([]string{principal[at+1:]}, components...) {
		body = appendText(body, text)
	}
	body = binary.BigEndian.AppendUint32(body, ordinary)
	body = binary.BigEndian.AppendUint32(body, uint32(now.Unix())) //nolint:gosec // by the format
	body = append(body, byte(version))                             //nolint:gosec // all of it follows the key
	body = binary.BigEndian.AppendUint16(body, uint16(key.Type))   //nolint:gosec // 16 bits
	body = appendText(body, string(key.Value))
	body = binary.BigEndian.AppendUint32(body, version)
	return Entry{Principal: principal, Version: version, Key: key, body: body}
}

func appendText(data []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(data, uint16(len(text))), text...) //nolint:gosec // a name or a key
}

// Parse reads a file. An empty file has no entries.
func Parse(data []byte) ([]Entry, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if len(data) < 2 || data[0] != 5 || data[1] != 2 {
		return nil, errors.New("the file is no keytab of version 2")
	}
	var entries []Entry
	for rest := data[2:]; len(rest) > 0; {
		if len(rest) < 4 {
			return nil, errors.New("the file ends within an entry")
		}
		size := int(int32(binary.BigEndian.Uint32(rest))) //nolint:gosec // signed by the format
		rest = rest[4:]
		hole := size < 0
		if hole { // the space of a deleted entry
			size = -size
		}
		if size > len(rest) {
			return nil, errors.New("the file ends within an entry")
		}
		if !hole && size > 0 {
			e, err := parse(rest[:size])
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w", len(entries)+1, err)
			}
			entries = append(entries, e)
		}
		rest = rest[size:]
	}
	return entries, nil
}

func parse(data []byte) (Entry, error) {
	r := reader{data: data}
	count := int(r.number(2))
	if count == 0 || count > len(data) { // before anything is allocated
		return Entry{}, errors.New("it has no name")
	}
	components := make([]string, count)
	realm := r.text()
	for i := range components {
		components[i] = r.text()
	}
	r.bytes(4 + 4) // the type of the name, and the time
	e := Entry{Principal: strings.Join(components, "/") + "@" + realm, Version: r.number(1), body: data}
	e.Key.Type = int32(r.number(2)) //nolint:gosec // 16 bits
	e.Key.Value = []byte(r.text())
	if len(r.data) >= 4 { // a version of more than 8 bits
		if full := r.number(4); full != 0 {
			e.Version = full
		}
	}
	if r.short {
		return Entry{}, errors.New("it is too short")
	}
	return e, nil
}

// reader reads numbers and texts of a counted length. After a short read everything is zero.
type reader struct {
	data  []byte
	short bool
}

func (r *reader) bytes(size int) []byte {
	if r.short = r.short || size > len(r.data); r.short {
		return make([]byte, min(size, 4))
	}
	taken := r.data[:size]
	r.data = r.data[size:]
	return taken
}

func (r *reader) number(size int) uint32 {
	var n uint32
	for _, b := range r.bytes(size) {
		n = n<<8 | uint32(b)
	}
	return n
}

func (r *reader) text() string { return string(r.bytes(int(r.number(2)))) }

// Marshal returns the file with these entries.
func Marshal(entries []Entry) []byte {
	data := []byte{5, 2}
	for _, e := range entries {
		data = append(binary.BigEndian.AppendUint32(data, uint32(len(e.body))), e.body...) //nolint:gosec // some hundred bytes
	}
	return data
}

// Keys returns the newest keys of a principal, and their version.
func Keys(entries []Entry, principal string) (keys []kerberos.Key, version uint32) {
	for _, e := range entries {
		if e.Principal == principal && e.Version >= version {
			if e.Version > version {
				keys, version = nil, e.Version
			}
			keys = append(keys, e.Key)
		}
	}
	return keys, version
}

// Split divides the entries into the entries of an account, which have one of the keys that its principal has or had, and the others.
func Split(entries []Entry, principal string) (own, others []Entry) {
	var keys []kerberos.Key
	for _, e := range entries {
		if e.Principal == principal {
			keys = append(keys, e.Key)
		}
	}
	for _, e := range entries {
		if slices.ContainsFunc(keys, e.Key.Equal) {
			own = append(own, e)
		} else {
			others = append(others, e)
		}
	}
	return own, others
}
