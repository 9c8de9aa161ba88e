package controller

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/envelope"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/objectstores"
)

// encrypted: a passphrase is made once for the documents of a machine, also if the manager is killed before they are stored.
func (r *objectRig) encrypted(t *testing.T) {
	address := strings.TrimPrefix(r.shelf.url, "https://")
	r.put(t, made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapStorage, "sealed", map[string]any{"spec": map[string]any{
		"source": map[string]any{
			"provider": "http", "uriPrefix": r.shelf.url + "/objects/", "providerConfig": map[string]any{
				"ca": string(r.shelf.ca.Certificate), "bearer": valueFrom("writer"), "read": map[string]any{"bearer": valueFrom("reader")},
			},
		},
		"encryption": map[string]any{
			"provider": "vault", "key": address + "/transit/machines",
			"providerConfig": map[string]any{"ca": string(r.shelf.ca.Certificate), "token": valueFrom("writer")},
			"machineConfig":  map[string]any{"token": valueFrom("reader")},
		},
	}}))
	reached, release := r.shelf.hold(arrived)
	r.machine(t, "light", "sealed", referringTo("sealed"))
	<-reached
	r.manager.Kill(t)
	release()
	r.again(r.whole, r.flags...)
	r.condition(t, bootstrap.ConditionReady, "True", "", "sealed")
	require.Len(t, r.shelf.passphrases, 1)
	names := r.shelf.names()
	require.Len(t, names, 1)
	var sealed contract.EncryptedConfig
	only(t, r.shelf.object(names[0]), &sealed)
	require.Contains(t, string(sealed.Spec.ProviderConfig), readerToken)
	require.NotContains(t, string(r.shelf.object(names[0])), writerToken)
	plain, err := envelope.NewOpener().Open(t.Context(), sealed, r.shelf.passphrases[0])
	require.NoError(t, err)
	require.Contains(t, string(plain), storedSecret)
	r.remove(t, "sealed")
	r.gone(t, "sealed")
	r.empty(t)
}

// presigned: the reference admits to the object of versitygw for the life of the documents alone. It is renewed before it ends, and at the
// end the object is removed.
func (r *objectRig) presigned(t *testing.T) {
	s := objectstores.StartS3(t, &r.shelf.ca)
	r.put(t, secret("bucket-writer", map[string]string{"value": s.SecretKey}))
	r.put(t, made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapStorage, "bucket", map[string]any{"spec": map[string]any{
		"expiry": "2m", "source": map[string]any{
			"provider": "s3", "uriPrefix": "s3://" + s.Bucket + "/nodes/", "access": bootstrap.AccessPresigned, "providerConfig": map[string]any{
				"endpoint": s.Endpoint, "region": s.Region, "pathStyle": true, "ca": string(r.shelf.ca.Certificate),
				"accessKeyID": s.AccessKey, "secretAccessKey": valueFrom("bucket-writer"),
			},
		},
	}}))
	r.machine(t, "light", "signed", referringTo("bucket"))
	r.condition(t, bootstrap.ConditionDataStored, "True", "", "signed")
	first := r.data(t, r.namespace, "signed")
	require.NotContains(t, string(first.Data["value"]), s.SecretKey)
	require.NotContains(t, string(first.Data["value"]), storedSecret)
	spec := remoteConfig(t, first)
	require.Equal(t, "http", spec.Provider)
	status, object := r.signedGet(t, spec)
	require.Equal(t, http.StatusOK, status)
	checkObject(t, spec, object)

	var secrets corev1.SecretList
	management.Await(t, r, limit, &secrets, func() error {
		if len(secrets.Items) != 1 || bytes.Equal(secrets.Items[0].Data["value"], first.Data["value"]) {
			return errors.New("the reference is that of before")
		}
		return nil
	}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": "signed" + dataSuffix})
	renewed := remoteConfig(t, &secrets.Items[0])
	require.Equal(t, spec.SHA256, renewed.SHA256)
	status, object = r.signedGet(t, renewed)
	require.Equal(t, http.StatusOK, status)
	checkObject(t, renewed, object)

	r.condition(t, bootstrap.ConditionDataStored, "True", "expired", "signed")
	status, _ = r.signedGet(t, renewed)
	require.NotEqual(t, http.StatusOK, status)
	r.remove(t, "signed")
	r.gone(t, "signed")
}

// signedGet gets an object as a machine without credentials does.
func (r *objectRig) signedGet(t *testing.T, spec contract.RemoteConfigSpec) (status int, body []byte) {
	t.Helper()
	var settings struct{ Query struct{ Value string } }
	require.NoError(t, json.Unmarshal(spec.ProviderConfig, &settings))
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(r.shelf.ca.Certificate))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, spec.URI+"?"+settings.Query.Value, nil)
	require.NoError(t, err)
	a, err := (&http.Client{Transport: transport}).Do(q)
	require.NoError(t, err)
	body, err = io.ReadAll(a.Body)
	require.NoError(t, err)
	require.NoError(t, a.Body.Close())
	return a.StatusCode, body
}
