package envelope

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const (
	cipherAlgorithm        = "aes-256-gcm"
	digestAlgorithm        = "sha-512"
	keyDerivationAlgorithm = "pbkdf2"

	minIterations = 50_000
	maxIterations = 10_000_000

	saltBytes = 16
	ivBytes   = 12
	tagBytes  = 16
)

// Check returns nil for a document that Open can decrypt with the right passphrase, else a *pluginv1.Error: of code Unsupported
// with the fields of unknown algorithms, whose other fields may have another form, or of code InvalidConfig with every field
// that is wrong. It quotes no value. The caller calls it before it asks for a passphrase.
func Check(doc v1alpha1.EncryptedConfig) error {
	algorithms := []field{
		{"spec.cipherAlgorithm", doc.Spec.CipherAlgorithm, exactly(cipherAlgorithm)},
		{"spec.digestAlgorithm", doc.Spec.DigestAlgorithm, exactly(digestAlgorithm)},
		{"spec.keyDerivationAlgorithm", doc.Spec.KeyDerivationAlgorithm, exactly(keyDerivationAlgorithm)},
	}
	var unsupported, wrong []document.Violation
	for _, f := range algorithms {
		if v := f.violation(); v != nil && f.value != "" {
			v.Hint = "a later release may support it"
			unsupported = append(unsupported, *v)
		}
	}
	if len(unsupported) > 0 {
		return &pluginv1.Error{
			Code: pluginv1.CodeUnsupported, Message: "the document is encrypted in a way that this release does not support",
			Violations: unsupported,
		}
	}
	for _, f := range append(fields(doc), algorithms...) {
		if v := f.violation(); v != nil {
			wrong = append(wrong, *v)
		}
	}
	if len(wrong) > 0 {
		return &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Violations: wrong}
	}
	return nil
}

// field is a required field with the check of its value.
type field struct {
	path, value string
	check       func(string) error
}

// fields are all but the algorithms.
func fields(doc v1alpha1.EncryptedConfig) []field {
	return []field{
		{"apiVersion", doc.APIVersion, exactly(v1alpha1.APIVersion)},
		{"kind", doc.Kind, exactly(v1alpha1.KindEncryptedConfig)},
		{"metadata.name", doc.Metadata.Name, naming.ValidName},
		{"spec.provider", doc.Spec.Provider, naming.ValidProvider},
		{"spec.passphraseURI", doc.Spec.PassphraseURI, checkURI},
		{"spec.ciphertext", doc.Spec.Ciphertext, func(s string) error {
			if decodedLen(s) < tagBytes {
				return fmt.Errorf("must be at least %d bytes as base64 with padding, without line breaks", tagBytes)
			}
			return nil
		}},
		{"spec.salt", doc.Spec.Salt, exactBytes(saltBytes)},
		{"spec.iv", doc.Spec.IV, exactBytes(ivBytes)},
		{"spec.iterations", doc.Spec.Iterations, checkIterations},
	}
}

func (f field) violation() *document.Violation {
	if f.value == "" {
		return &document.Violation{Field: f.path, Message: "is required"}
	}
	if err := f.check(f.value); err != nil {
		return &document.Violation{Field: f.path, Message: err.Error()}
	}
	return nil
}

func exactly(want string) func(string) error {
	return func(s string) error {
		if s != want {
			return errors.New("must be " + want)
		}
		return nil
	}
}

func exactBytes(count int) func(string) error {
	return func(s string) error {
		if decodedLen(s) != count {
			return fmt.Errorf("must be %d bytes as base64 with padding, without line breaks", count)
		}
		return nil
	}
}

func checkURI(s string) error {
	_, err := v1alpha1.ParsePassphraseURI(s)
	return err
}

func checkIterations(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || strconv.Itoa(n) != s || n < minIterations || n > maxIterations {
		return fmt.Errorf("must be a whole number from %d to %d, as a string of digits", minIterations, maxIterations)
	}
	return nil
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// decodedLen returns how many bytes s encodes, without decoding all of it; -1 unless s is what an encoder writes: standard base64
// with padding, unused bits zero. encoding/base64 ignores line breaks, also when it is strict.
func decodedLen(s string) int {
	if len(s) < 4 || len(s)%4 != 0 || len(strings.TrimLeft(s, alphabet)) > 2 {
		return -1
	}
	last, err := base64.StdEncoding.Strict().DecodeString(s[len(s)-4:])
	if err != nil {
		return -1
	}
	return (len(s)/4-1)*3 + len(last)
}

func invalid(field, message, hint string) error {
	return &pluginv1.Error{
		Code:       pluginv1.CodeInvalidConfig,
		Violations: []document.Violation{{Field: field, Message: message, Hint: hint}},
	}
}
