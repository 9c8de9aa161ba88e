// Package containerdtest has the documents, certificates and fixtures that the tests of this plugin share.
package containerdtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Secretive is a spec with a secret in every field that holds one.
const Secretive = `{"registries":{
	"r.test":{"auth":{"username":"u","password":{"value":"c4n4ry-1"}},"headers":{"X-A":{"value":"c4n4ry-2"}},
		"mirrors":[{"url":"https://m.test","headers":{"X-A":{"value":"c4n4ry-3"}},"client":{"cert":"@CERT@","key":{"value":"@KEY@"}}}]},
	"t.test":{"auth":{"identityToken":{"value":"c4n4ry-4"}}}},
	"proxy":{"httpSecret":{"value":"http://u:c4n4ry-5@p.test"},"httpsSecret":{"value":"http://u:c4n4ry-6@p.test"}}}`

// Leak fails the test when a text contains a secret of the tests in any form.
func Leak(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range []string{Canary, fmt.Sprintf("%x", Canary), strings.Trim(fmt.Sprintf("%d", []byte(Canary)), "[]"), "MIGHAgEA"} {
		if strings.Contains(text, form) {
			t.Errorf("%s shows a secret: %.400s", where, text)
		}
	}
}

// ReadCase reads the document of a case, with certificates filled in.
func ReadCase(t *testing.T, file string) v1alpha1.ContainerRuntime {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	stream, err := document.Decode(file, in)
	if err != nil || len(stream.Errors) > 0 || len(stream.Documents) != 1 {
		t.Fatalf("%s: %+v, %v", file, stream.Errors, err)
	}
	data, err := stream.Documents[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc v1alpha1.ContainerRuntime
	if violations := document.Unmarshal([]byte(Filled(t, string(data))), &doc); len(violations) > 0 {
		t.Fatalf("%s: %+v", file, violations)
	}
	return doc
}

// Masked replaces secrets by *** and certificates and keys by their kind.
func Masked(text string) string {
	text = regexp.MustCompile(`(?s)-----BEGIN ([A-Z ]+)-----.*?-----END [A-Z ]+-----`).ReplaceAllString(text, "($1)")
	return regexp.MustCompile(Canary+`[A-Za-z0-9-]*`).ReplaceAllString(text, "***")
}

// Canary is part of every secret of these tests.
const Canary = "c4n4ry"

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

// Filled puts certificates and keys where a spec, as JSON, names them: @CA@, @CERT@ and its key @KEY@, @OTHER@ another key.
func Filled(t testing.TB, spec string) string {
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

// ContainerRuntime is the document with this spec, which is JSON.
func ContainerRuntime(t testing.TB, spec string) v1alpha1.ContainerRuntime {
	t.Helper()
	var doc v1alpha1.ContainerRuntime
	text := `{"apiVersion":"` + v1alpha1.APIVersion + `","kind":"` + v1alpha1.KindContainerRuntime +
		`","metadata":{"name":"node"},"spec":` + Filled(t, spec) + `}`
	if violations := document.Unmarshal([]byte(text), &doc); len(violations) > 0 {
		t.Fatalf("%+v", violations)
	}
	return doc
}
