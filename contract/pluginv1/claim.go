package pluginv1

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

const filePrefix = "file:"

// FileClaim is the id of a file, or of the part of it that a document owns; an empty part is the whole file. In the path, #
// stands as %23 and % as %25: testdata/claims.jsonl has examples of ids and digests.
func FileClaim(path, part string) string {
	id := filePrefix + strings.NewReplacer("%", "%25", "#", "%23").Replace(path)
	if part != "" {
		id += "#" + part
	}
	return id
}

// ClaimedFile returns the path and the part that an id names; ok is false for what is no file.
func ClaimedFile(id string) (path, part string, ok bool) {
	name, ok := strings.CutPrefix(id, filePrefix)
	path, part, _ = strings.Cut(name, "#")
	return strings.NewReplacer("%25", "%", "%23", "#").Replace(path), part, ok
}

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
