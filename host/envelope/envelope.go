// Package envelope encrypts a stream as an EncryptedConfig document, and decrypts one.
//
// Its functions are pure, but for the random bytes of Seal: they read no files and ask no provider, so that the caller supplies the
// passphrase. PBKDF2-HMAC-SHA-512 derives a key from passphrase and salt, and AES-256-GCM encrypts the stream and authenticates
// the document's name and parameters. Section "Encrypted documents" of contract/SPEC.md has the form of every byte.
package envelope

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const iterations = "210000" // of a new document

// Seal encrypts plain, a stream, and returns the document for it, with a random salt and IV. An error is a *pluginv1.Error of
// code InvalidConfig with the fields that are wrong, as by Check; a passphrase that is too short is an error of
// spec.passphraseURI. The caller may add metadata.timeout and metadata.when to the document, and no other field may change.
func Seal(name, provider, passphraseURI string, providerConfig json.RawMessage, passphrase, plain []byte) (v1alpha1.EncryptedConfig, error) {
	salt := make([]byte, saltBytes)
	rand.Read(salt)
	return seal(v1alpha1.EncryptedConfig{
		Header: v1alpha1.Header{
			APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindEncryptedConfig, Metadata: v1alpha1.Metadata{Name: name},
		},
		Spec: v1alpha1.EncryptedConfigSpec{
			Provider:               provider,
			PassphraseURI:          passphraseURI,
			Salt:                   base64.StdEncoding.EncodeToString(salt),
			CipherAlgorithm:        cipherAlgorithm,
			DigestAlgorithm:        digestAlgorithm,
			Iterations:             iterations,
			KeyDerivationAlgorithm: keyDerivationAlgorithm,
			ProviderConfig:         providerConfig,
		},
	}, passphrase, plain)
}

// seal adds IV and ciphertext to a document that has everything else.
func seal(doc v1alpha1.EncryptedConfig, passphrase, plain []byte) (v1alpha1.EncryptedConfig, error) {
	derive, err := derivation(doc.Spec, passphrase)
	if err != nil {
		return v1alpha1.EncryptedConfig{}, err
	}
	key, err := derive()
	if err != nil {
		return v1alpha1.EncryptedConfig{}, err
	}
	aead, err := newAEAD(key)
	if err != nil {
		return v1alpha1.EncryptedConfig{}, err
	}
	sealed := aead.Seal(nil, nil, plain, additionalData(doc))
	doc.Spec.IV = base64.StdEncoding.EncodeToString(sealed[:ivBytes])
	doc.Spec.Ciphertext = base64.StdEncoding.EncodeToString(sealed[ivBytes:])
	if err := Check(doc); err != nil {
		return v1alpha1.EncryptedConfig{}, err
	}
	return doc, nil
}

// Open checks and decrypts a document. An error is a *pluginv1.Error: that of Check, or of code InvalidConfig for a passphrase
// that is too short, and for one that does not decrypt the document. The latter is the same whatever the cause is: another
// passphrase, or a field that is not as it was encrypted. The largest number of iterations takes several seconds: Open returns the
// error of the context as soon as that has ended. Beside the document, it needs memory for the stream once.
func (o *Opener) Open(ctx context.Context, doc v1alpha1.EncryptedConfig, passphrase []byte) ([]byte, error) {
	if err := Check(doc); err != nil {
		return nil, err
	}
	derive, err := derivation(doc.Spec, passphrase)
	if err != nil {
		return nil, err
	}
	key, err := o.key(ctx, derive)
	if err != nil {
		return nil, err
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	sealed := make([]byte, ivBytes+base64.StdEncoding.DecodedLen(len(doc.Spec.Ciphertext)))
	_, ivErr := base64.StdEncoding.Decode(sealed, []byte(doc.Spec.IV))
	n, err := base64.StdEncoding.Decode(sealed[ivBytes:], []byte(doc.Spec.Ciphertext))
	if ivErr != nil || err != nil { // never after Check
		return nil, invalid("spec.ciphertext", undecryptable, "")
	}
	plain, err := aead.Open(sealed[:0], nil, sealed[:ivBytes+n], additionalData(doc))
	if err != nil {
		return nil, invalid("spec.ciphertext", undecryptable, "encrypt the stream again, under this name, provider and passphraseURI")
	}
	return plain[:len(plain):len(plain)], nil
}

const undecryptable = "cannot be decrypted: the passphrase is another one, or a field of the document has changed since it was encrypted"

// newAEAD returns the AEAD of a key. It expects the IV before the ciphertext and has no nonce of its own: Go's FIPS 140 mode refuses
// every other AES-GCM.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// additionalData returns what is authenticated beside the ciphertext: a JSON object of strings, sorted by name, without white
// space. No value needs an escape, by Check. The IV is not part of it: it exists only when the ciphertext does, and AES-GCM
// authenticates it itself.
func additionalData(doc v1alpha1.EncryptedConfig) []byte {
	var data []byte
	for _, member := range [][2]string{
		{"apiVersion", doc.APIVersion},
		{"cipherAlgorithm", doc.Spec.CipherAlgorithm},
		{"digestAlgorithm", doc.Spec.DigestAlgorithm},
		{"iterations", doc.Spec.Iterations},
		{"keyDerivationAlgorithm", doc.Spec.KeyDerivationAlgorithm},
		{"kind", doc.Kind},
		{"name", doc.Metadata.Name},
		{"passphraseURI", doc.Spec.PassphraseURI},
		{"provider", doc.Spec.Provider},
		{"salt", doc.Spec.Salt},
	} {
		data = append(data, `,"`+member[0]+`":"`+member[1]+`"`...)
	}
	data[0] = '{'
	return append(data, '}')
}
