package sdk_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

func TestIntent(t *testing.T) {
	t.Parallel()
	state := machine.NewState(filepath.Join(t.TempDir(), "state"))
	intent := sdk.Intent[map[string]string]{State: state, Name: "begun"}
	record, err := intent.Load()
	require.NoError(t, err)
	require.Nil(t, record)
	require.NoError(t, intent.End())

	require.NoError(t, intent.Begin(map[string]string{"a": "1"}))
	record, err = intent.Load()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1"}, *record)
	require.NoError(t, intent.End())
	record, err = intent.Load()
	require.NoError(t, err)
	require.Nil(t, record)

	require.NoError(t, state.Save("begun", []byte("c4n4ry")))
	_, err = intent.Load()
	require.EqualError(t, err, "the intent begun cannot be read")
	require.Error(t, sdk.Intent[string]{State: machine.NewState(""), Name: "begun"}.Begin("x"))
	require.ErrorContains(t, sdk.Intent[func()]{State: state, Name: "begun"}.Begin(nil), "cannot be encoded")
}
