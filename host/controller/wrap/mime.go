package wrap

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// part is a part of a MIME message. Its content is not encoded, because cloudbase-init does not decode that of cloud-config.
type part struct {
	contentType string
	// name is a file name, whose extension names the interpreter of a script for cloudbase-init; empty for none.
	name string
	// merge is how cloud-init merges cloud-config with that of earlier parts; empty for its default.
	merge   string
	content []byte
}

// mixed returns a MIME message. Its first header is Content-Type, by which cloudbase-init recognizes one. The boundary is
// derived from the content, which therefore cannot contain it.
func mixed(parts ...part) []byte {
	sum := sha256.New()
	for _, p := range parts {
		sum.Write(p.content)
	}
	boundary := fmt.Sprintf("machineadm-%x", sum.Sum(nil)[:16])
	var out bytes.Buffer
	fmt.Fprintf(&out, "Content-Type: multipart/mixed; boundary=\"%s\"\nMIME-Version: 1.0\n\n", boundary)
	for _, p := range parts {
		fmt.Fprintf(&out, "--%s\nContent-Type: %s; charset=\"utf-8\"\nMIME-Version: 1.0\nContent-Transfer-Encoding: 8bit\n", boundary, p.contentType)
		if p.name != "" {
			fmt.Fprintf(&out, "Content-Disposition: attachment; filename=\"%s\"\n", p.name)
		}
		if p.merge != "" {
			fmt.Fprintf(&out, "Merge-Type: %s\n", p.merge)
		}
		out.WriteString("\n")
		out.Write(p.content)
		out.WriteString("\n") // a part of the boundary
	}
	fmt.Fprintf(&out, "--%s--\n", boundary)
	return out.Bytes()
}

// userPart returns the output of a template as a part of the type of its first line.
func userPart(content []byte, types map[string]part) (part, error) {
	first, _, _ := bytes.Cut(content, []byte("\n"))
	p, known := types[string(bytes.TrimSpace(first))]
	if bytes.HasPrefix(first, []byte("#!")) {
		p, known = types["#!"]
	}
	if !known {
		return part{}, &TemplateError{Line: 1, Message: "neither calls machine_config nor begins with one of " +
			strings.Join(slices.Sorted(maps.Keys(types)), ", ")}
	}
	p.content = content
	return p, nil
}
