//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/member"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
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

// TestFilesOfTheDocumentAreOwn: kubeadm reset may remove a file of the document from the directory of certificates, because it is
// written again.
func TestFilesOfTheDocumentAreOwn(t *testing.T) {
	t.Parallel()
	file := func(path string) []settings.File { return []settings.File{{FileSpec: sdk.FileSpec{Path: path}}} }
	n := &node{s: settings.Settings{Credentials: file("/etc/kubernetes/pki/ca.crt"), Files: file("/etc/kubernetes/pki/oidc-ca.crt")}}
	have := member.Observed{Certificates: []string{"/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/pki/oidc-ca.crt", "/etc/kubernetes/pki/other.crt"}}
	assert.Equal(t, []string{"/etc/kubernetes/pki/other.crt"}, have.Others(n.own()))
}
