package run

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// conflicts finds documents that ask for different values of one thing. The result is by place; both documents get an error.
func conflicts(all []planned) map[int]problems {
	out := map[int]problems{}
	type owner struct {
		place int
		field string
		value []byte
	}
	owners := map[string]owner{}
	for place, p := range all {
		for _, c := range p.claims() {
			first, known := owners[c.ID]
			switch {
			case !known:
				owners[c.ID] = owner{place, c.Field, c.Digest}
			case first.place != place && !bytes.Equal(first.value, c.Digest):
				a, b := all[first.place], p
				out[first.place] = append(out[first.place], problem{err: a.conflict(first.field, c.ID, b.doc, c.Field)})
				out[place] = append(out[place], problem{err: b.conflict(c.Field, c.ID, a.doc, first.field)})
			}
		}
	}
	return out
}

// conflict is the error of one of two documents.
func (d doc) conflict(field, id string, other doc, otherField string) report.Error {
	there := other.at(otherField, report.Error{})
	return d.at(field, report.Error{
		Code: report.CodeConflict,
		Message: fmt.Sprintf("asks for another value of %s than %s at %s:%d:%d", id, other.label(), there.File, there.Line,
			there.Column),
		Hint: "leave it to one of the two documents, or make both the same",
	})
}

// writes are the absolute paths of the files that a document owns.
func (p planned) writes() []string {
	var out []string
	for _, c := range p.claims() {
		if path, ok := strings.CutPrefix(c.ID, "file:"); ok {
			path, _, _ = strings.Cut(path, "#")
			out = append(out, path)
		}
	}
	return out
}

// claims are what a document owns, as far as its planning got.
func (p planned) claims() []pluginv1.Claim {
	if p.pending != nil {
		return p.pending.Claims
	}
	return p.plan.Claims
}
