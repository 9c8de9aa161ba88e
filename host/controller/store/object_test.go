package store_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/store"
)

func object(name, uid string) *store.Object {
	source := &bootstrap.SourceStorage{Provider: "s3", URIPrefix: "s3://bucket/a/"}
	return store.NewObject("shop", source, []byte("key"), "ns", name, uid)
}

// TestObjectNames: a name is the same each time, fits every provider, and is that of one config alone.
func TestObjectNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, object("config", "uid"), object("config", "uid"))
	assert.Regexp(t, `^[a-z0-9-]{64}$`, object("config", "uid").Name)
	for _, other := range []*store.Object{
		object("config", "uid2"), object("confi", "guid"),
		store.NewObject("shop", &bootstrap.SourceStorage{}, []byte("kez"), "ns", "config", "uid"),
	} {
		assert.NotEqual(t, object("config", "uid").Name, other.Name)
	}
	assert.NotContains(t, store.Bearer([]byte("key"), "ns", "config", "uid"), object("config", "uid").Name[:8])
}

// TestObjectTerms: the record of an object is what the annotation has, and admits no token.
func TestObjectTerms(t *testing.T) {
	t.Parallel()
	terms, err := store.NewTerms(&bootstrap.MachineBootstrapStorageSpec{Source: &bootstrap.SourceStorage{}}, false)
	require.NoError(t, err)
	terms.Object = object("config", "uid")
	terms.Object.Stored = at("2026-11-27T10:00:00Z")
	annotation, err := terms.Annotation()
	require.NoError(t, err)
	read := store.ReadTerms(map[string]string{bootstrap.AnnotationStorage: annotation})
	assert.Equal(t, terms, read)
	assert.Equal(t, bootstrap.AccessRole, read.Object.Access)
	assert.False(t, read.Admits(""))
}

// TestClaimTerms: a claim is pending until its result was handed out, and asks for the same documents each time.
func TestClaimTerms(t *testing.T) {
	t.Parallel()
	storage := bootstrap.StorageReference{APIGroup: "storage.example.com", Kind: "Directory", Name: "files"}
	terms := store.NewClaimTerms(storage)
	assert.False(t, terms.Reports(), "they go to the provider of the storage")
	terms.Claim.For([]byte("documents"))
	assert.Equal(t, bootstrap.MachineBootstrapDataClaimSpec{
		StorageRef: storage, SecretName: "data", SHA256: "9b16b44d0e0a5cac4f968befb0b5b5eba913f9ef3dfa1501ed728b6ead72a357",
	}, terms.Claim.Spec("data"))
	for _, version := range []string{"", "7"} {
		terms.Claim.Version = version
		annotation, err := terms.Annotation()
		require.NoError(t, err)
		read := store.ReadTerms(map[string]string{bootstrap.AnnotationStorage: annotation})
		assert.Equal(t, terms, read)
		assert.True(t, read.Remote())
		assert.Equal(t, version == "", read.Pending())
		assert.False(t, read.Admits(""))
	}
}

// TestRenewal: a reference that stops to admit is renewed when a third of its time is left.
func TestRenewal(t *testing.T) {
	t.Parallel()
	o := object("config", "uid")
	assert.Zero(t, o.Renewal())
	o.Stored, o.Until = at("2026-11-27T10:00:00Z"), at("2026-11-27T13:00:00Z")
	assert.Equal(t, at("2026-11-27T12:00:00Z"), o.Renewal())
}

// TestObjectReference: the machine gets what the plugin answers, and the report stays with it where the provider has no place for one.
func TestObjectReference(t *testing.T) {
	t.Parallel()
	o := object("config", "uid")
	for want, stored := range map[string]pluginv1.Stored{
		"role": {URI: "s3://bucket/a/n", ProviderConfig: []byte(`{"region":"r"}`), ReportURI: "s3://bucket/a/n.report.json"},
		"presigned": {
			Provider: "http", URI: "https://bucket.example.com/a/n", ProviderConfig: []byte(`{"query":{"value":"signature"}}`), Expires: at("2026-11-27T13:00:00Z"),
		},
	} {
		d := o.Reference("config", stored, []byte("stream"))
		_, err := emit.Stream([]emit.Document{d})
		require.NoError(t, err)
		spec, ok := d.Spec.(*contract.RemoteConfigSpec)
		require.True(t, ok)
		assert.Equal(t, cmp.Or(stored.Provider, "s3"), spec.Provider, want)
		assert.Equal(t, stored.URI, spec.URI, want)
		assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256([]byte("stream"))), spec.SHA256, want)
		assert.Equal(t, &contract.RemoteReport{URI: stored.ReportURI, Disabled: stored.ReportURI == ""}, spec.Report, want)
		assert.JSONEq(t, string(stored.ProviderConfig), string(spec.ProviderConfig), want)
	}
}

// TestReportDocument: the report is read from beside the object, with the settings of the storage.
func TestReportDocument(t *testing.T) {
	t.Parallel()
	o := object("config", "uid")
	text, err := o.ReportDocument([]byte(`{"secretAccessKey":{"value":"v"}}`))
	require.NoError(t, err)
	var document struct {
		Kind string
		Spec struct {
			Provider, URI  string
			ProviderConfig json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal(text, &document))
	assert.Equal(t, "RemoteConfig s3 s3://bucket/a/"+o.Name+".report.json", document.Kind+" "+document.Spec.Provider+" "+document.Spec.URI)
	assert.JSONEq(t, `{"secretAccessKey":{"value":"v"}}`, string(document.Spec.ProviderConfig))
	_, err = o.ReportDocument([]byte("{c4n4ry"))
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "c4n4ry")
}
