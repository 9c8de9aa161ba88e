package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// canary is part of every secret of these tests.
const canary = "c4n4ry"

// pair is a certificate that signs itself, and its key.
type pair struct{ cert, key string }

func newPair(t testing.TB, name string) pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return pair{block("CERTIFICATE", der), block("PRIVATE KEY", private)}
}

// filled puts certificates and keys where a spec, as JSON, names them: @CA@, @CERT@ and its key @KEY@, @OTHER@ another key.
func filled(t testing.TB, spec string) string {
	t.Helper()
	if !strings.Contains(spec, "@") {
		return spec
	}
	ca, client := newPair(t, "ca"), newPair(t, "client")
	inString := func(text string) string {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Trim(string(quoted), `"`)
	}
	return strings.NewReplacer(
		"@CA@", inString(ca.cert), "@CERT@", inString(client.cert), "@KEY@", inString(client.key), "@OTHER@", inString(ca.key),
	).Replace(spec)
}

// containerRuntime is the document with this spec, which is JSON.
func containerRuntime(t testing.TB, spec string) v1alpha1.ContainerRuntime {
	t.Helper()
	var doc v1alpha1.ContainerRuntime
	text := `{"apiVersion":"` + v1alpha1.APIVersion + `","kind":"` + v1alpha1.KindContainerRuntime +
		`","metadata":{"name":"node"},"spec":` + filled(t, spec) + `}`
	if violations := document.Unmarshal([]byte(text), &doc); len(violations) > 0 {
		t.Fatalf("%+v", violations)
	}
	return doc
}

// wanted is the document, found to be right.
func wanted(t testing.TB, os, spec string) desired {
	t.Helper()
	d, violations := resolve(containerRuntime(t, spec), os)
	if len(violations) > 0 {
		t.Fatalf("%+v", violations)
	}
	return d
}

// compare holds violations against "FIELD: part of the message", all of them in their order.
func compare(t *testing.T, name string, got []sdk.Violation, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %+v, want %q", name, got, want)
		return
	}
	for i, text := range want {
		field, message, _ := strings.Cut(text, ": ")
		if got[i].Field != field || !strings.Contains(got[i].Message, message) {
			t.Errorf("%s: got %+v, want %s", name, got[i], text)
		}
	}
}

// configured is the configuration that these settings make of the present one.
func configured(m sdk.Machine, r release, settings []setting, imports ...string) (configuration, error) {
	now, err := readPresent(m, installed(r), imports)
	if err != nil {
		return configuration{}, err
	}
	return configure(m, installed(r), now, settings)
}
