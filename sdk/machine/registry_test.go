package machine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/sdk/machine"
)

func TestRegistryData(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "time.windows.com,0x9", "é😀", "a\x00b"} {
		got, ok := machine.RegistryText(text).Text()
		assert.True(t, ok)
		assert.Equal(t, text, got)
	}
	assert.Equal(t, []byte("a\x00\xe9\x00\x00\x00"), machine.RegistryText("aé").Bytes)
	for _, number := range []uint32{0, 1, 0xffffffff} {
		got, ok := machine.RegistryNumber(number).Number()
		assert.True(t, ok)
		assert.Equal(t, number, got)
	}
	for want, d := range map[string]machine.RegistryData{
		`REG_SZ "a\nb"`:              machine.RegistryText("a\nb"),
		`REG_SZ "unterminated"`:      {Type: machine.RegistrySZ, Bytes: utf16("unterminated")},
		`REG_EXPAND_SZ "%x%"`:        {Type: machine.RegistryExpandSZ, Bytes: utf16("%x%\x00")},
		"REG_DWORD 4294967295":       machine.RegistryNumber(0xffffffff),
		"REG_DWORD of 3 bytes":       {Type: machine.RegistryDWORD, Bytes: []byte{1, 2, 3}},
		"REG_NONE of 0 bytes":        {},
		"REG_BINARY of 1 bytes":      {Type: 3, Bytes: []byte{1}},
		"REG_MULTI_SZ of 4 bytes":    {Type: 7, Bytes: utf16("a\x00")},
		"REG_QWORD of 8 bytes":       {Type: 11, Bytes: make([]byte, 8)},
		"registry type 5 of 0 bytes": {Type: 5},
	} {
		assert.Equal(t, want, d.String())
		_, isText := d.Text()
		assert.Equal(t, d.Type == machine.RegistrySZ || d.Type == machine.RegistryExpandSZ, isText)
	}
}

// utf16 encodes ASCII.
func utf16(text string) []byte {
	var data []byte
	for _, c := range []byte(text) {
		data = append(data, c, 0)
	}
	return data
}
