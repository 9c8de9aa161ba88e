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
	Time    time.Time
	Key     kerberos.Key

	nameType uint32
}

// New returns an entry for a name of an account.
func New(principal string, version uint32, now time.Time, key kerberos.Key) Entry {
	const ordinary = 1
	return Entry{Principal: principal, Version: version, Time: now, Key: key, nameType: ordinary}
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
	components := make([]string, r.number(2))
	if len(components) == 0 || len(components) > len(data) {
		return Entry{}, errors.New("it has no name")
	}
	realm := r.text()
	for i := range components {
		components[i] = r.text()
	}
	e := Entry{Principal: strings.Join(components, "/") + "@" + realm}
	e.nameType = r.number(4)
	e.Time = time.Unix(int64(r.number(4)), 0)
	e.Version = r.number(1)
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
		name, realm, _ := cut(e.Principal)
		components := strings.Split(name, "/")
		body := binary.BigEndian.AppendUint16(nil, uint16(len(components))) //nolint:gosec // of a name
		for _, text := range append([]string{realm}, components...) {
			body = appendText(body, text)
		}
		body = binary.BigEndian.AppendUint32(body, e.nameType)
		body = binary.BigEndian.AppendUint32(body, uint32(e.Time.Unix())) //nolint:gosec // by the format
		body = append(body, byte(e.Version))                              //nolint:gosec // all of it follows the key
		body = binary.BigEndian.AppendUint16(body, uint16(e.Key.Type))    //nolint:gosec // 16 bits
		body = appendText(body, string(e.Key.Value))
		body = binary.BigEndian.AppendUint32(body, e.Version)
		data = append(binary.BigEndian.AppendUint32(data, uint32(len(body))), body...) //nolint:gosec // some hundred bytes
	}
	return data
}

func appendText(data []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint16(data, uint16(len(text))), text...) //nolint:gosec // it came from a file or a name
}

// cut divides a principal; the realm has no @.
func cut(principal string) (name, realm string, ok bool) {
	i := strings.LastIndex(principal, "@")
	if i < 0 {
		return principal, "", false
	}
	return principal[:i], principal[i+1:], true
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

// Split divides the entries into those of an account, which have one of the keys that its principal has or had, and the others.
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
