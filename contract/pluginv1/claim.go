package pluginv1

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// NewClaim returns the claim of the thing id whose desired value is value, one slice for each part, for example the
// content and the mode of a file. No part at all means that the thing has to be absent.
//
// The digest is HMAC-SHA-256 under key, the Request.ClaimKey, of every part behind its length as 8 bytes, big-endian.
// Without a key there is no digest: the runtime wants no claims, and Register sends none.
func NewClaim(key []byte, id, field string, value ...[]byte) Claim {
	c := Claim{ID: id, Field: field}
	if len(key) == 0 {
		return c
	}
	sum := hmac.New(sha256.New, key)
	for _, part := range value {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		sum.Write(part)
	}
	c.Digest = sum.Sum(nil)
	return c
}
