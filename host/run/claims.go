package run

import (
	"bytes"
	"fmt"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// conflicts finds documents that ask for different values of one thing. The result is by place; both documents get an error.
func conflicts(all []planned) map[int]problems {
	out := map[int]problems{}
	owners := map[string]owner{}
	files := map[string][]owner{}
	for place, p := range all {
		for _, c := range p.claims() {
			mine := owner{p.doc, place, c}
			first, known := owners[c.ID]
			if !known {
				owners[c.ID] = mine
			} else if first.contradicts(mine) {
				what := "another value of " + c.ID + " than "
				out[first.place] = append(out[first.place], problem{err: first.conflict(what, mine, "")})
				out[place] = append(out[place], problem{err: mine.conflict(what, first, "")})
			}
			path, part, isFile := pluginv1.ClaimedFile(c.ID)
			if !isFile {
				continue
			}
			for _, other := range files[path] {
				if (other.part() == "") == (part == "") || !other.contradicts(mine) {
					continue
				}
				whole, piece := other, mine
				if part == "" {
					whole, piece = mine, other
				}
				out[whole.place] = append(out[whole.place], problem{err: whole.conflict("the whole of "+path+", a part of which ", piece, " asks for")})
				out[piece.place] = append(out[piece.place], problem{err: piece.conflict("a part of "+path+", the whole of which ", whole, " asks for")})
				break // one of many parts is enough
			}
			files[path] = append(files[path], mine)
		}
	}
	return out
}

// owner is a document with one of its claims.
type owner struct {
	doc
	place int
	claim pluginv1.Claim
}

// contradicts says that no machine can be as both want it. The digest of a thing that has to be absent is the same for a file
// and for a part of it.
func (o owner) contradicts(other owner) bool {
	return o.place != other.place && !bytes.Equal(o.claim.Digest, other.claim.Digest)
}

func (o owner) part() string {
	_, part, _ := pluginv1.ClaimedFile(o.claim.ID)
	return part
}

// conflict is the error of one of two documents.
func (o owner) conflict(what string, other owner, end string) report.Error {
	there := other.at(other.claim.Field, report.Error{})
	return o.at(o.claim.Field, report.Error{
		Code:    report.CodeConflict,
		Message: fmt.Sprintf("asks for %s%s%s at %s:%d:%d", what, other.label(), end, there.File, there.Line, there.Column),
		Hint:    "leave it to one of the two documents, or make both the same",
	})
}

// writes are the absolute paths of the files that a document owns.
func (p planned) writes() []string {
	var out []string
	for _, c := range p.claims() {
		if path, _, ok := pluginv1.ClaimedFile(c.ID); ok {
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
