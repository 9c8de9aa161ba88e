package envelope

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/base64"
	"strconv"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// MinPassphrase is the length of the shortest passphrase, in bytes. Source: NIST SP 800-131A, 112 bits for a key of HMAC.
const MinPassphrase = 14

const keyBytes = 32

// Opener decrypts documents. It derives one key at a time: a derivation cannot be interrupted, so one whose caller has gone ends by
// itself, and the next waits for it.
type Opener struct{ deriving chan struct{} }

// NewOpener returns an Opener that derives nothing yet.
func NewOpener() *Opener { return &Opener{deriving: make(chan struct{}, 1)} }

// key returns the key of a derivation, or the error of the context as soon as that has ended. The result of a derivation that its
// caller did not wait for is dropped. The derivation holds no part of a document but the salt.
func (o *Opener) key(ctx context.Context, derive func() ([]byte, error)) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	select {
	case o.deriving <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	type result struct {
		key []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-o.deriving }()
		key, err := derive()
		done <- result{key, err}
	}()
	select {
	case r := <-done:
		return r.key, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// derivation checks a passphrase and returns the function that derives its key.
func derivation(s v1alpha1.EncryptedConfigSpec, passphrase []byte) (func() ([]byte, error), error) {
	if len(passphrase) < MinPassphrase {
		return nil, invalid("spec.passphraseURI", "is a passphrase of fewer than "+strconv.Itoa(MinPassphrase)+" bytes",
			"use a random passphrase of 32 bytes")
	}
	salt, err := base64.StdEncoding.DecodeString(s.Salt)
	if err != nil {
		return nil, err
	}
	rounds, err := strconv.Atoi(s.Iterations)
	if err != nil {
		return nil, err
	}
	password := string(passphrase) // the caller clears its own
	return func() ([]byte, error) { return pbkdf2.Key(sha512.New, password, salt, rounds, keyBytes) }, nil
}
