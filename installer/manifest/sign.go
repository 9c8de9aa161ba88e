package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"aead.dev/minisign"
)

// untrustedComment is the comment that minisign writes by default. It is not signed; any other one is refused, so that no
// byte of a signature can be changed.
const untrustedComment = "signature from minisign secret key"

// Key is a minisign public key.
type Key struct{ public minisign.PublicKey }

// ParseKey reads a minisign public key: its 56 characters, or a file of them with a comment line.
func ParseKey(text []byte) (Key, error) {
	var k Key
	if err := k.public.UnmarshalText(bytes.TrimSpace(text)); err != nil {
		return Key{}, errors.New("is not a minisign public key, which is 56 characters and starts with RW")
	}
	return k, nil
}

// ID returns the key's identifier as minisign shows it.
func (k Key) ID() string { return keyID(k.public.ID()) }

// String returns the 56 characters of the key.
func (k Key) String() string { return k.public.String() }

// PrivateKey is a minisign secret key.
type PrivateKey struct{ private minisign.PrivateKey }

// ParsePrivateKey reads a minisign secret key file, which has no password.
func ParsePrivateKey(text []byte) (k PrivateKey, err error) {
	if err := k.private.UnmarshalText(text); err != nil {
		return PrivateKey{}, errors.New("is not a minisign secret key without a password")
	}
	return k, nil
}

// Public returns the public key.
func (k PrivateKey) Public() Key {
	public, _ := k.private.Public().(minisign.PublicKey) // the type that the library documents
	return Key{public}
}

// Sign returns manifest.json.minisig. The manifest must be one that Decode accepts.
func Sign(manifest []byte, key PrivateKey) ([]byte, error) {
	m, err := Decode(bytes.NewReader(manifest))
	if err != nil {
		return nil, err
	}
	r := minisign.NewReader(bytes.NewReader(manifest))
	if _, err := bytes.NewBuffer(nil).ReadFrom(r); err != nil {
		return nil, err
	}
	return r.SignWithComments(key.private, m.comment(), untrustedComment), nil
}

// comment returns the trusted comment of the signature: what `minisign -t` takes and `minisign -V` shows.
func (m *Manifest) comment() string {
	return fmt.Sprintf("name:%s version:%s sequence:%d", m.Name, m.Version, m.Sequence)
}

// SignatureError reports a signature that no trusted key has made for this manifest.
type SignatureError struct {
	// Problem follows the name of the file: "manifest.json.minisig" + Problem.
	Problem, Remedy string
}

// Error returns the problem.
func (e *SignatureError) Error() string { return SignatureName + " " + e.Problem }

// Verify returns the manifest if one of the keys signed it. The manifest is decoded after that only. A manifest without a
// good signature is a *SignatureError.
func Verify(manifest, signature []byte, keys []Key) (*Manifest, error) {
	var s minisign.Signature
	err := s.UnmarshalText(signature)
	if err == nil && (s.Algorithm != minisign.HashEdDSA || s.UntrustedComment != untrustedComment || s.String() != string(signature)) {
		err = errors.New("not as minisign writes it")
	}
	if err != nil {
		return nil, &SignatureError{"is not a signature of minisign", "copy the release again: the file is damaged"}
	}
	known, signed := false, false
	var trusted []string
	for _, k := range keys {
		trusted = append(trusted, k.ID())
		if k.public.ID() == s.KeyID {
			known, signed = true, signed || minisign.Verify(k.public, manifest, signature)
		}
	}
	switch {
	case !known:
		return nil, &SignatureError{
			"is of the key " + keyID(s.KeyID) + ", which is not trusted; trusted: " + strings.Join(trusted, ", "),
			"check the location; if the publisher has a new key, get it from a source other than this server",
		}
	case !signed:
		return nil, &SignatureError{"does not fit " + FileName, "use another mirror: the manifest or the signature was changed or damaged"}
	}
	m, err := Decode(bytes.NewReader(manifest))
	if err != nil {
		return nil, err
	}
	if s.TrustedComment != m.comment() {
		return nil, &SignatureError{
			"is of " + strconv.Quote(s.TrustedComment) + ", and " + FileName + " is of " + strconv.Quote(m.comment()),
			"the publisher must sign the manifest again",
		}
	}
	return m, nil
}

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }
