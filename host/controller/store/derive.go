package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Bearer derives the token of a config from the key of its cluster: a reconciliation that is repeated makes the same stream. The UID keeps
// the token of an earlier config of the same name away from the documents of this one.
func Bearer(key []byte, namespace, name, uid string) string {
	return base64.RawURLEncoding.EncodeToString(derived(key, "bearer", namespace, name, uid))
}

func derived(key []byte, use, namespace, name, uid string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "machineadm storage %s\x00%s\x00%s\x00%s", use, namespace, name, uid) // a hash does not fail
	return mac.Sum(nil)
}
