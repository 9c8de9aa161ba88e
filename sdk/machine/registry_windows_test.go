package machine_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/machineadm/machineadm/contract/target"
	prerequisite "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
)

const testKey = `SOFTWARE\machineadm-test`

// TestRegistry: data of every type is read back, by names in any case, and other programs read it as well.
func TestRegistry(t *testing.T) {
	key, _, err := registry.CreateKey(registry.LOCAL_MACHINE, testKey, registry.QUERY_VALUE)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		prerequisite.Missing(t, "the rights of an administrator")
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, key.Close())
		assert.NoError(t, registry.DeleteKey(registry.LOCAL_MACHINE, testKey))
	})
	r := liveRegistry(t)
	for _, want := range []machine.RegistryData{
		machine.RegistryText(""), machine.RegistryText("time.windows.com,0x9 é😀"), machine.RegistryNumber(0xffffffff),
		machine.RegistryNumber(0),
		{Type: machine.RegistrySZ, Bytes: []byte("a\x00")},
		{Type: 3, Bytes: make([]byte, 5000)},
		{Type: 7, Bytes: []byte("a\x00\x00\x00\x00\x00")},
		{Type: 3, Bytes: []byte{}},
	} {
		_, err := r.Value(testKey, "Value")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, r.SetValue(testKey, "Value", want))
		got, err := r.Value(`software\MACHINEADM-test`, "vaLUE")
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, r.DeleteValue(testKey, "VALUE"))
		require.NoError(t, r.DeleteValue(testKey, "Value"), "a value that does not exist")
	}
	require.NoError(t, r.SetValue(testKey, "Text", machine.RegistryText("x é")))
	text, kind, err := key.GetStringValue("Text")
	require.NoError(t, err)
	require.Equal(t, "x é", text)
	require.Equal(t, uint32(registry.SZ), kind)
	require.NoError(t, r.SetValue(testKey, "Text", machine.RegistryNumber(7)))
	number, kind, err := key.GetIntegerValue("Text")
	require.NoError(t, err)
	require.Equal(t, uint64(7), number)
	require.Equal(t, uint32(registry.DWORD), kind)
}

// TestRegistryWithoutTheKey: a key is not created.
func TestRegistryWithoutTheKey(t *testing.T) {
	r := liveRegistry(t)
	const absent = testKey + `-is-not-there`
	_, err := r.Value(absent, "Value")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, r.DeleteValue(absent, "Value"))
	err = r.SetValue(absent, "Value", machine.RegistryText("canary"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, `set the registry value HKLM\`+absent+`\Value: open the key: `)
	require.NotContains(t, err.Error(), "canary")
	require.Error(t, r.SetValue(absent, "a\x00b", machine.RegistryNumber(1)))
}

func liveRegistry(t *testing.T) machine.Registry {
	t.Helper()
	m, closeMachine, err := machine.New("", "", target.Target{OS: "windows"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, closeMachine()) })
	return m.Registry
}
