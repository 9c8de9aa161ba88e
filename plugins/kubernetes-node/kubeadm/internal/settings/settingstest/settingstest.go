// Package settingstest provides KubernetesNode documents for tests.
package settingstest

import (
	"crypto"
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
)

// Canary is part of every secret of the documents that can have it.
const Canary = "c4n4ry"

// JSON returns a document in YAML as JSON. @CA@, @CA-KEY@, @PUBLIC@ and @PUBLIC-KEY@ are replaced by material that matches.
func JSON(t testing.TB, text string) []byte {
	t.Helper()
	data, err := document.JSON("", []byte(text))
	check(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	check(t, err)
	private := privateKey(t, key)
	return []byte(strings.NewReplacer(
		`"@CA@"`, block(t, "CERTIFICATE", certificate), `"@CA-KEY@"`, private, `"@PUBLIC@"`, block(t, "PUBLIC KEY", public), `"@PUBLIC-KEY@"`, private,
	).Replace(string(data)))
}

func privateKey(t testing.TB, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	return block(t, "PRIVATE KEY", der)
}

// block returns a block of PEM as a JSON string.
func block(t testing.TB, kind string, der []byte) string {
	t.Helper()
	text, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
	check(t, err)
	return string(text)
}

// Document decodes a document.
func Document(t testing.TB, data []byte) v1alpha1.KubernetesNode {
	t.Helper()
	var doc v1alpha1.KubernetesNode
	if violations := document.Unmarshal(data, &doc); len(violations) > 0 {
		t.Fatal(violations)
	}
	return doc
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
