package promise_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

// putAside replaces a part of the documents by a reference to it. Its file is there, or an earlier document writes it.
func (s *scripted) putAside(t *testing.T, r *rand.Rand, name string) {
	t.Helper()
	from := r.IntN(len(s.docs))
	to := from + 1 + r.IntN(len(s.docs)-from)
	d := &doc{kind: remote, name: "r" + name, file: "srv/part-" + name, holds: slices.Clone(s.docs[from:to])}
	if chance(r, 10) {
		d.when = pick(r, "{os: [linux]}", windowsOnly, debianOnly, fedoraOnly)
	}
	if d.uri = "/" + d.file; !s.isLive {
		d.uri = filepath.Join(s.root, d.file)
	}
	s.docs = slices.Replace(s.docs, from, to, d)
	if chance(r, 2) {
		s.write(t, d.file, "") // until the documents are complete
		return
	}
	for _, held := range everyDoc(d.holds) { // at its turn, a document of which a part cannot be read fails itself
		held.broken = ""
	}
	writer := &doc{kind: noop, name: "w" + name, Provider: generic, Touch: []string{d.file}, Live: chance(r, 8)}
	s.docs = slices.Insert(s.docs, r.IntN(from+1), writer)
}

// complete writes the files of references, and returns the text of the documents. The last one is first: another file
// can hold the document that writes its file.
func (s *scripted) complete(t *testing.T, docs []*doc) string {
	t.Helper()
	for _, d := range slices.Backward(docs) {
		if d.kind != remote {
			continue
		}
		part := s.complete(t, d.holds)
		if s.model.has(d.file) {
			s.write(t, d.file, part)
			s.model.tree["/"+d.file] = part
			continue
		}
		for _, writer := range everyDoc(s.docs) {
			if slices.Contains(writer.Touch, d.file) {
				writer.Content = part
			}
		}
	}
	text := ""
	for _, d := range docs {
		text += d.text(t)
	}
	return text
}

// everyDoc is these documents and the documents of all references.
func everyDoc(docs []*doc) []*doc {
	var out []*doc
	for _, d := range docs {
		out = append(append(out, d), everyDoc(d.holds)...)
	}
	return out
}
