// Package token derives bootstrap tokens, so that the same machine always has the same one: a token that expired while its
// controller was paused, moved or stopped comes back as the one that the machine already has.
package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
)

// KeyBytes is the length of the key of a cluster.
const KeyBytes = 32

// Token is a bootstrap token. Source: Kubernetes documentation, "Authenticating with Bootstrap Tokens".
type Token struct {
	// ID is public: 6 lower-case letters and digits.
	ID string
	// Secret is not: 16 lower-case letters and digits.
	Secret string
}

// String is the form that kubeadm reads. It is secret.
func (t Token) String() string { return t.ID + "." + t.Secret }

// Derive returns the token of a config. Another epoch is another token. The key belongs to the cluster; who has it has every
// token of the cluster.
func Derive(key []byte, namespace, name string, epoch int) Token {
	return Token{
		ID:     derive(key, "id", namespace, name, epoch, 6),
		Secret: derive(key, "secret", namespace, name, epoch, 16),
	}
}

// derive is HMAC-SHA-256 in base32, whose letters and digits a token may have: 30 bits for an ID, 80 for a secret.
// Of 10,000 tokens two have one ID with a probability of 4.5 %, so the controller compares the secret, too.
func derive(key []byte, purpose, namespace, name string, epoch, length int) string {
	mac := hmac.New(sha256.New, key)
	// No name of Kubernetes has a slash, so no two inputs are the same text.
	_, _ = fmt.Fprintf(mac, "machineadm/bootstrap-token/v1/%s/%s/%s/%d", purpose, namespace, name, epoch) // a hash does not fail
	text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil))
	return strings.ToLower(text[:length])
}
