// Package claims compares what the documents of a stream claim, and what they need of each other.
package claims

import (
	"bytes"
	"fmt"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run/values"
)

// Conflicts returns, by index, the documents that claim different values of one thing. Both documents get an error. Assumptions are not
// compared here.
func Conflicts(all []values.Planned) map[int]values.Problems {
	out := map[int]values.Problems{}
	type pair struct {
		a, b           int
		fieldA, fieldB string
	}
	refused := map[pair]bool{}
	refuse := func(d claimed, what string, other claimed) {
		both := pair{d.Order, other.Order, d.claim.Field, other.claim.Field}
		if d.claim.Field != "" && refused[both] { // one field can decide several things
			return
		}
		refused[both] = true
		out[d.Order] = append(out[d.Order], d.conflict(what, other)...)
	}
	first := map[string]claimed{}
	paths := map[string][]claimed{}
	for _, p := range all {
		for _, c := range p.Claims() {
			if c.Assumed {
				continue
			}
			mine := claimed{p.Doc, c}
			other, known := first[c.ID]
			if !known {
				first[c.ID] = mine
			} else if other.contradicts(mine) {
				what := "sets " + c.ID + " to another value than "
				refuse(other, what, mine)
				refuse(mine, what, other)
			}
			kind, path, hasPath := pluginv1.ClaimedPath(c.ID)
			if !hasPath {
				continue
			}
			_, part, _ := pluginv1.ClaimedFile(c.ID)
			for _, other := range paths[path] {
				if there, _, _ := pluginv1.ClaimedPath(other.claim.ID); there != kind && other.contradicts(mine) {
					refuse(other, "sets the "+there+" "+path+", where a "+kind+" is set by ", mine)
					refuse(mine, "sets the "+kind+" "+path+", where a "+there+" is set by ", other)
					break
				}
				if other.isPart() == (part != "") || !other.contradicts(mine) {
					continue
				}
				whole, piece := other, mine
				if part == "" {
					whole, piece = mine, other
				}
				refuse(whole, "sets the whole of "+path+", a part of which is set by ", piece)
				refuse(piece, "sets a part of "+path+", the whole of which is set by ", whole)
				break // one of several parts is sufficient
			}
			paths[path] = append(paths[path], mine)
		}
	}
	return out
}

// Assumptions returns, by index, the warnings of documents whose assumptions differ from what another document claims, or assumes earlier.
func Assumptions(all []values.Planned) map[int][]pluginv1.Warning {
	first := map[string]claimed{}
	for _, assumed := range []bool{false, true} {
		for _, p := range all {
			for _, c := range p.Claims() {
				if _, known := first[c.ID]; !known && c.Assumed == assumed {
					first[c.ID] = claimed{p.Doc, c}
				}
			}
		}
	}
	out := map[int][]pluginv1.Warning{}
	for _, p := range all {
		for _, c := range p.Claims() {
			if other := first[c.ID]; c.Assumed && other.contradicts(claimed{p.Doc, c}) {
				there := other.ErrorAt(other.claim.Field, report.Error{})
				by, remedy := "in", "set this field, or change the other document"
				if other.claim.Assumed {
					by, remedy = "without "+other.claim.Field+" in", "set one of the two fields"
				}
				out[p.Order] = append(out[p.Order], pluginv1.Warning{Field: c.Field, Message: fmt.Sprintf(
					"as long as it is not set, %s has another value than %s %s at %s:%d:%d: %s", c.ID, by, other.Label(), there.File, there.Line, there.Column, remedy)})
			}
		}
	}
	return out
}

// claimed is a claim of a document.
type claimed struct {
	values.Doc
	claim pluginv1.Claim
}

// contradicts reports whether no machine can satisfy both claims. A file and a part of it have the same digest when both
// must be absent.
func (c claimed) contradicts(other claimed) bool {
	return c.Order != other.Order && !bytes.Equal(c.claim.Digest, other.claim.Digest)
}

// isPart reports whether the claim is of a part of a file.
func (c claimed) isPart() bool {
	_, part, _ := pluginv1.ClaimedFile(c.claim.ID)
	return part != ""
}

func (c claimed) conflict(what string, other claimed) values.Problems {
	there := other.ErrorAt(other.claim.Field, report.Error{})
	return c.Problem(c.claim.Field, report.Error{
		Code:    report.CodeConflict,
		Message: fmt.Sprintf("%s%s at %s:%d:%d", what, other.Label(), there.File, there.Line, there.Column),
		Hint:    "keep the setting in one of the two documents, or make both equal",
	})
}
