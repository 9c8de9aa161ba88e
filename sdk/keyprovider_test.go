package sdk_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func keysOf(p sdk.KeyProvider) pluginv1.KeyProvider {
	p.Name, p.Version, p.OS = "tester", "1.2.3", []string{machinetest.Target().OS}
	return sdk.NewKeyProvider(p, machinetest.Target().OS)
}

func asking(spec string) pluginv1.PassphraseRequest {
	return pluginv1.PassphraseRequest{Document: remote("EncryptedConfig", spec), Target: machinetest.Target()}
}

const keySpec = `{"provider":"tester","passphraseURI":"x://k","salt":"AAAA","iv":"AAAA","cipherAlgorithm":"aes-256-gcm",` +
	`"digestAlgorithm":"sha-512","iterations":"210000","keyDerivationAlgorithm":"pbkdf2-hmac-sha512","providerConfig":{"a":1}}`

func TestDescribeKeyProvider(t *testing.T) {
	t.Parallel()
	about := pluginv1.DescribeRequest{Target: machinetest.Target()}
	d, err := keysOf(sdk.KeyProvider{}).Describe(t.Context(), about)
	require.NoError(t, err)
	require.Len(t, d.Kinds, 1)
	assert.Equal(t, "EncryptedConfig", d.Kinds[0].Kind)
	assert.Empty(t, d.Capabilities)
	d, err = keysOf(sdk.KeyProvider{
		NewPassphrase: func(context.Context, sdk.Key) (v1alpha1.Secret, string, error) { return v1alpha1.Secret{}, "", nil },
	}).Describe(t.Context(), about)
	require.NoError(t, err)
	assert.Equal(t, []string{"new-passphrase"}, d.Capabilities)
}

func TestKeyProviderValidates(t *testing.T) {
	t.Parallel()
	called := false
	p := keysOf(sdk.KeyProvider{
		Validate: func(k sdk.Key) []sdk.Violation {
			_, violations := sdk.ProviderConfig[struct{}](k.ProviderConfig)
			return violations
		},
		Passphrase: func(context.Context, sdk.Key) (v1alpha1.Secret, error) { called = true; return v1alpha1.Secret{}, nil },
	})
	for spec, want := range map[string][]string{
		`{"provider":"tester","passphraseURI":"x://k"}`:                          nil,
		`{"provider":"tester","providerConfig":{"token":"c4n4ry"},"x":"c4n4ry"}`: {"spec.x", "spec.passphraseURI", "spec.providerConfig.token"},
		`{"provider":"tester","passphraseURI":["c4n4ry"]}`:                       {"spec.passphraseURI"},
	} {
		r := asking(spec)
		r.ValidateOnly = true
		got, err := p.Passphrase(t.Context(), r)
		assert.Nil(t, got)
		if want == nil {
			require.NoError(t, err)
			continue
		}
		assert.Equal(t, want, violated(t, err), spec)
		assert.NotContains(t, fmt.Sprintf("%+v", *pluginv1.AsError(err)), "c4n4ry")
	}
	assert.False(t, called)

	r := asking(keySpec)
	r.Target.OS = "plan9"
	_, err := p.Passphrase(t.Context(), r)
	requireCode(t, err, pluginv1.CodeUnsupported, "plan9")
	r = asking(keySpec)
	r.Document = remote("RemoteConfig", keySpec)
	_, err = p.Passphrase(t.Context(), r)
	requireCode(t, err, pluginv1.CodeUnsupported, "RemoteConfig")
	_, err = p.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{Target: machinetest.Target()})
	requireCode(t, err, pluginv1.CodeUnsupported, "makes no passphrases")
	_, err = p.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{})
	requireCode(t, err, pluginv1.CodeUnsupported, "")
}

// TestPassphraseBounds: the bytes arrive as they are; one that is too short or too long never does.
func TestPassphraseBounds(t *testing.T) {
	t.Parallel()
	for size, good := range map[int]bool{0: false, 13: false, 14: true, 4096: true, 4097: false} {
		raw := []byte(strings.Repeat("\x00\xff\n ", size/4+1)[:size])
		p := keysOf(sdk.KeyProvider{
			Passphrase: func(_ context.Context, k sdk.Key) (v1alpha1.Secret, error) {
				assert.Equal(t, sdk.Key{Target: machinetest.Target(), URI: "x://k", ProviderConfig: []byte(`{"a":1}`)}, k)
				return v1alpha1.NewSecret(raw), nil
			},
			NewPassphrase: func(_ context.Context, k sdk.Key) (v1alpha1.Secret, string, error) {
				assert.Equal(t, sdk.Key{Target: machinetest.Target(), URI: "alias", ProviderConfig: []byte(`{"a":1}`)}, k)
				return v1alpha1.NewSecret(raw), "x://alias@1", nil
			},
		})
		got, err := p.Passphrase(t.Context(), asking(keySpec))
		made, madeErr := p.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{
			Key: "alias", Target: machinetest.Target(), ProviderConfig: []byte(`{"a":1}`),
		})
		if good {
			require.NoError(t, err)
			require.NoError(t, madeErr)
			assert.Equal(t, raw, got)
			assert.Equal(t, pluginv1.NewPassphrase{Passphrase: raw, URI: "x://alias@1"}, made)
			continue
		}
		e := failure(t, err, pluginv1.CodePrecondition, "fewer than 14 bytes or more than 4 KiB")
		assert.True(t, e.Final)
		assert.Equal(t, "spec.passphraseURI", e.Violations[0].Field)
		requireCode(t, madeErr, pluginv1.CodeInternal, "fewer than 14 bytes")
		assert.Empty(t, got)
		assert.Empty(t, made)
	}
}

func TestKeyProviderFailures(t *testing.T) {
	t.Parallel()
	away := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	p := keysOf(sdk.KeyProvider{
		Passphrase: func(context.Context, sdk.Key) (v1alpha1.Secret, error) { return v1alpha1.Secret{}, away },
		NewPassphrase: func(context.Context, sdk.Key) (v1alpha1.Secret, string, error) {
			return v1alpha1.NewSecret([]byte("c4n4ry of enough bytes")), "", away
		},
	})
	_, err := p.Passphrase(t.Context(), asking(keySpec))
	requireCode(t, err, pluginv1.CodeRetry, "refused")
	made, err := p.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{Target: machinetest.Target()})
	requireCode(t, err, pluginv1.CodeRetry, "refused")
	assert.Empty(t, made)
}

// TestKeyProviderOverTheWire: neither the passphrase nor the value of a panic is in an error.
func TestKeyProviderOverTheWire(t *testing.T) {
	t.Parallel()
	raw := []byte("\x00\xff of 14 bytes\n")
	client := connect(t, keysOf(sdk.KeyProvider{
		Passphrase: func(context.Context, sdk.Key) (v1alpha1.Secret, error) { return v1alpha1.NewSecret(raw), nil },
		NewPassphrase: func(context.Context, sdk.Key) (v1alpha1.Secret, string, error) {
			panic("c4n4ry")
		},
	}))
	got, err := client.Passphrase(t.Context(), asking(keySpec))
	require.NoError(t, err)
	assert.Equal(t, raw, got)
	_, err = client.NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{Target: machinetest.Target()})
	assert.NotContains(t, fmt.Sprintf("%+v", *failure(t, err, pluginv1.CodeInternal, "panicked")), "c4n4ry")
}
