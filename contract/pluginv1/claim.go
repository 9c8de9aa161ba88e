package pluginv1

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// Claim is one attribute or part of the machine that a document owns.
type Claim struct {
	ID     string // canonical, for example "sysctl:net.core.somaxconn", "file:/etc/motd", "unit:x.service#enabled"
	Digest []byte // HMAC-SHA-256 of the desired value under Request.ClaimKey
	Field  string // path of the field that causes the claim; empty for the whole document
	// Assumed is a value that the document does not ask for: what the machine gets as long as Field is not set.
	Assumed bool
}

const filePrefix = "file:"

// FileClaim returns the id of a file or of a part of it; an empty part is the whole file. It escapes # as %23 and % as %25 in
// the path. testdata/claims.jsonl has examples of ids and digests.
func FileClaim(path, part string) string {
	id := filePrefix + strings.ReplaceAll(strings.ReplaceAll(path, "%", "%25"), "#", "%23")
	if part != "" {
		id += "#" + part
	}
	return id
}

// ClaimedFile returns the path and the part of an id; ok is false unless the id names a file.
func ClaimedFile(id string) (path, part string, ok bool) {
	name, ok := strings.CutPrefix(id, filePrefix)
	path, part, _ = strings.Cut(name, "#")
	return strings.ReplaceAll(strings.ReplaceAll(path, "%23", "#"), "%25", "%"), part, ok
}

// ClaimedPath returns the type of a thing that has a path, which is file, directory or link, and the path; ok is false for
// any other thing.
func ClaimedPath(id string) (kind, path string, ok bool) {
	kind, path, _ = strings.Cut(id, ":")
	switch kind {
	case "directory":
		return kind, path, true
	case "file", "link":
		path, _, ok = ClaimedFile(filePrefix + path)
	}
	return kind, path, ok
}

// NewClaim returns the claim of id with the desired value, one slice for each part, for example the content and the mode of
// a file. No part means that the thing has to be absent.
//
// The digest is HMAC-SHA-256 under key, the Request.ClaimKey, of every part, each preceded by its length as 8 bytes,
// big-endian. Without a key there is no digest, and Register sends no claims.
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
