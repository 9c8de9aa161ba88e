//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFingerprint: credentials, and the order of free-form fields, do not count; settings do.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(spec string) string {
		t.Helper()
		got, err := fingerprint(decode(t, creator+spec).Spec)
		require.NoError(t, err)
		return got
	}
	const external = "etcd: {external: {endpoints: ['https://e:2379'], ca: a, cert: b, key: {value: "
	require.Equal(t, of(external+"c4n4ry}}}\n"), of(external+"other}}}\n"))
	require.Equal(t, of("kubelet: {config: {a: 1, b: 2}}\n"), of("kubelet: {config: {b: 2, a: 1}}\n"))
	require.NotEqual(t, of("kubelet: {config: {a: 1}}\n"), of("kubelet: {config: {a: 2}}\n"))
}
