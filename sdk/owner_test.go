package sdk_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk"
)

// accounts has the user and the group etcd with the numbers 101 and 102.
type accounts struct{}

func (accounts) LookupOwner(user, group string) (uid, gid int, err error) {
	uid, gid = -1, -1
	for _, name := range []string{user, group} {
		if name != "" && name != "etcd" {
			return -1, -1, fs.ErrNotExist
		}
	}
	if user == "etcd" {
		uid, gid = 101, 100
	}
	if group == "etcd" {
		gid = 102
	}
	return uid, gid, nil
}

func TestLookupOwner(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sdk.Owner{
		"etcd:etcd": {UID: 101, GID: 102}, "65532:65532": {UID: 65532, GID: 65532}, "etcd:0": {UID: 101, GID: 0}, "0:etcd": {UID: 0, GID: 102},
		"0:0": {}, "4294967294:1": {UID: 4294967294, GID: 1},
	} {
		assert.True(t, sdk.ValidOwner(text), text)
		got, err := sdk.LookupOwner(accounts{}, text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"joe:0", "0:joe", "joe:joe"} {
		_, err := sdk.LookupOwner(accounts{}, text)
		require.ErrorIs(t, err, fs.ErrNotExist, text)
	}
	for _, text := range []string{"", "etcd", ":", "etcd:", ":etcd", "1", "1:", "-1:1", "4294967295:1", "1:99999999999", "1x:1", "a:b:c", "1:2:3", "a b:c", "+1:1"} {
		assert.False(t, sdk.ValidOwner(text), text)
	}
}
