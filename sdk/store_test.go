package sdk_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

func storing() pluginv1.StoreRequest {
	return pluginv1.StoreRequest{
		Storage: pluginv1.Storage{
			URIPrefix: "x://a/", Access: sdk.AccessRole, ProviderConfig: []byte(`{"token":{"value":"c4n4ry"}}`), Target: machinetest.Target(),
		},
		Name: "n-1", Data: []byte("stream"), Expiry: time.Hour, Report: true, RetryFor: 10 * time.Second,
	}
}

// TestStore: the plugin gets the place of the object, and its reference is encoded with its secrets. A failure that can pass is tried again.
func TestStore(t *testing.T) {
	t.Parallel()
	type config struct {
		Token v1alpha1.Secret `json:"token,omitzero"`
		CA    string          `json:"ca,omitempty"`
	}
	tries := 0
	expires := time.Now().Add(time.Hour)
	reference := sdk.Reference{
		Provider: "http", URI: "https://a/n-1", ReportURI: "https://a/r", Expires: expires,
		ProviderConfig: config{Token: v1alpha1.NewSecret([]byte(`of the "machine"`))},
	}
	s := sourceOf(sdk.Source{
		Store: func(_ context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
			assert.Equal(t, "x://a/n-1", l.URI)
			assert.Equal(t, sdk.AccessRole, l.Access)
			assert.Equal(t, sdk.NewObject{Data: []byte("stream"), Expiry: time.Hour, Report: tries < 2}, o, tries)
			if tries++; tries == 1 {
				return sdk.Reference{}, syscall.ECONNREFUSED
			}
			return reference, nil
		},
		Remove: func(_ context.Context, l sdk.Location) error {
			assert.Equal(t, "x://a/n-1", l.URI)
			if tries++; tries == 1 {
				return syscall.ECONNREFUSED
			}
			return nil
		},
	})
	d, err := s.Describe(t.Context(), pluginv1.DescribeRequest{Target: machinetest.Target()})
	require.NoError(t, err)
	assert.Equal(t, []string{"store"}, d.Capabilities)
	r := storing()
	got, err := s.Store(t.Context(), r)
	require.NoError(t, err)
	assert.JSONEq(t, `{"token":{"value":"of the \"machine\""}}`, string(got.ProviderConfig))
	got.ProviderConfig = nil
	assert.Equal(t, pluginv1.Stored{Provider: "http", URI: "https://a/n-1", ReportURI: "https://a/r", Expires: expires}, got)

	reference.ProviderConfig, r.Report = config{}, false
	got, err = s.Store(t.Context(), r)
	require.NoError(t, err)
	assert.Empty(t, got.ProviderConfig)
	assert.Empty(t, got.ReportURI, "the request has no report")
	tries = 0
	require.NoError(t, s.Remove(t.Context(), pluginv1.RemoveRequest{Storage: r.Storage, Name: r.Name, RetryFor: r.RetryFor}))
	assert.Equal(t, 2, tries)
}

// TestStoreRefusals: what is wrong with a storage is named by its fields, without a connection.
func TestStoreRefusals(t *testing.T) {
	t.Parallel()
	failing := func(context.Context, sdk.Location, sdk.NewObject) (sdk.Reference, error) {
		return sdk.Reference{}, sdk.At(sdk.Precondition("refused", "check spec.providerConfig.token"), "uriPrefix")
	}
	of := sdk.Source{
		Validate: func(l sdk.Location) []sdk.Violation {
			_, violations := sdk.ProviderConfig[struct {
				Token v1alpha1.Secret `json:"token"`
			}](l.ProviderConfig)
			return violations
		},
		Store: failing, Remove: func(context.Context, sdk.Location) error { return errors.New("is not called") },
	}
	s := sourceOf(of)
	r := storing()
	_, err := s.Store(t.Context(), r)
	e := failure(t, err, pluginv1.CodePrecondition, "refused")
	assert.Equal(t, "check providerConfig.token", e.Hint)
	assert.Equal(t, []sdk.Violation{{Field: "uriPrefix", Message: "refused", Hint: "check providerConfig.token"}}, e.Violations)

	r.ValidateOnly, r.Name = true, ""
	got, err := s.Store(t.Context(), r)
	require.NoError(t, err)
	assert.Zero(t, got)
	r.Storage.Access = sdk.AccessPresigned
	_, err = s.Store(t.Context(), r)
	assert.Equal(t, "access", failure(t, err, pluginv1.CodeUnsupported, "has no presigned access").Violations[0].Field)
	presigning := of
	presigning.Presigns = true
	_, err = sourceOf(presigning).Store(t.Context(), r)
	require.NoError(t, err)
	r.Storage = pluginv1.Storage{Target: r.Storage.Target, Access: "public", ProviderConfig: []byte(`{"tokens":"c4n4ry"}`)}
	_, err = s.Store(t.Context(), r)
	assert.ElementsMatch(t, []string{"uriPrefix", "access", "providerConfig.tokens"}, violated(t, err))
	err = s.Remove(t.Context(), pluginv1.RemoveRequest{Storage: r.Storage, Name: "n"})
	assert.Len(t, violated(t, err), 3)

	r = storing()
	for _, name := range []string{"", "A", "a/b", "..", "a.b", string(make([]byte, 201))} {
		r.Name = name
		_, err = s.Store(t.Context(), r)
		requireCode(t, err, pluginv1.CodeInternal, "a name of an object")
	}
	r = storing()
	r.Storage.Target.OS = "plan9"
	_, err = s.Store(t.Context(), r)
	requireCode(t, err, pluginv1.CodeUnsupported, "plan9")
	without := sourceOf(sdk.Source{})
	_, err = without.Store(t.Context(), storing())
	requireCode(t, err, pluginv1.CodeUnsupported, "stores nothing")
	err = without.Remove(t.Context(), pluginv1.RemoveRequest{Storage: storing().Storage, Name: "n"})
	requireCode(t, err, pluginv1.CodeUnsupported, "stores nothing")
}
