package machine

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Registry is HKEY_LOCAL_MACHINE in the registry of Windows. A key is a path below it, such as
// `SYSTEM\CurrentControlSet\Services\W32Time\Config`. Case makes no difference in the names of keys and values. On other
// operating systems, and in an image, every method returns ErrUnsupported.
type Registry interface {
	// Value reads a value; fs.ErrNotExist when the value or its key does not exist.
	Value(key, name string) (RegistryData, error)
	// SetValue sets a value of an existing key. When it returns without an error, the value survives a crash.
	SetValue(key, name string, data RegistryData) error
	// DeleteValue deletes a value, which survives a crash as well. A value that does not exist is no error.
	DeleteValue(key, name string) error
}

// RegistryData is the data of a value with its type, as Windows stores it. So data of any type can be restored.
type RegistryData struct {
	Type  RegistryType
	Bytes []byte
}

// RegistryType is the type of a value, with the number that Windows gives it.
type RegistryType uint32

// The types that RegistryData can encode or decode.
const (
	RegistrySZ       RegistryType = 1 // text
	RegistryExpandSZ RegistryType = 2 // text with references to environment variables, such as %SystemRoot%
	RegistryDWORD    RegistryType = 4 // number of 32 bits
)

// String returns the name that reg.exe uses.
func (t RegistryType) String() string {
	names := []string{"REG_NONE", "REG_SZ", "REG_EXPAND_SZ", "REG_BINARY", "REG_DWORD"}
	switch {
	case int(t) < len(names):
		return names[t]
	case t == 7:
		return "REG_MULTI_SZ"
	case t == 11:
		return "REG_QWORD"
	default:
		return fmt.Sprint("registry type ", uint32(t))
	}
}

// RegistryText is data of the type RegistrySZ.
func RegistryText(text string) RegistryData {
	d := RegistryData{Type: RegistrySZ}
	for _, unit := range append(utf16.Encode([]rune(text)), 0) {
		d.Bytes = binary.LittleEndian.AppendUint16(d.Bytes, unit)
	}
	return d
}

// RegistryNumber is data of the type RegistryDWORD.
func RegistryNumber(number uint32) RegistryData {
	return RegistryData{Type: RegistryDWORD, Bytes: binary.LittleEndian.AppendUint32(nil, number)}
}

// Text returns the text of RegistrySZ and RegistryExpandSZ, whether it is terminated or not; ok is false for other types.
func (d RegistryData) Text() (text string, ok bool) {
	if d.Type != RegistrySZ && d.Type != RegistryExpandSZ {
		return "", false
	}
	return strings.TrimSuffix(decodeUTF16(d.Bytes), "\x00"), true
}

// Number returns the number of RegistryDWORD; ok is false for other types, and for data that is not one.
func (d RegistryData) Number() (number uint32, ok bool) {
	if d.Type != RegistryDWORD || len(d.Bytes) != 4 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(d.Bytes), true
}

// String returns the type and the data, of most types only their size.
func (d RegistryData) String() string {
	if text, ok := d.Text(); ok {
		return fmt.Sprintf("%v %q", d.Type, text)
	}
	if number, ok := d.Number(); ok {
		return fmt.Sprintf("%v %d", d.Type, number)
	}
	return fmt.Sprintf("%v of %d bytes", d.Type, len(d.Bytes))
}

func decodeUTF16(data []byte) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}
