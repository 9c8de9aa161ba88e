package outbox

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/visible"
)

// Trim returns a report as JSON of at most size bytes. Of a larger one it leaves out, until that is enough, the changes and waits of the
// documents without errors, the changes of all documents, the warnings, the documents without errors, and the last errors. The first
// error stays, even if it alone exceeds size.
func Trim(r report.Report, size int) ([]byte, error) {
	if r.Documents == nil {
		r.Documents = []report.Document{}
	}
	text, err := encode(r)
	if err != nil || len(text) <= size {
		return text, err
	}
	r.Trimmed, r.Documents = true, slices.Clone(r.Documents)
	sound := func(d report.Document) bool { return len(d.Errors) == 0 }
	withoutChanges := func(d *report.Document) {
		d.Omitted += len(d.Changes) + len(d.Waits)
		d.Changes, d.Waits = nil, nil
	}
	for _, step := range []func(){
		func() {
			for i := range r.Documents {
				if sound(r.Documents[i]) {
					withoutChanges(&r.Documents[i])
				}
			}
		},
		func() {
			for i := range r.Documents {
				withoutChanges(&r.Documents[i])
			}
		},
		func() {
			for i := range r.Documents {
				d := &r.Documents[i]
				d.Omitted += len(d.Warnings)
				d.Warnings = nil
			}
		},
		func() { r.Documents = slices.DeleteFunc(r.Documents, sound) },
	} {
		step()
		if text, err = encode(r); err != nil || len(text) <= size {
			return text, err
		}
	}
	for len(r.Errors) > 1 && err == nil && len(text) > size {
		r.Errors = r.Errors[:len(r.Errors)/2]
		for i := range r.Documents {
			d := &r.Documents[i]
			d.Errors = slices.DeleteFunc(slices.Clone(d.Errors), func(index int) bool { return index >= len(r.Errors) })
		}
		r.Documents = slices.DeleteFunc(r.Documents, sound)
		text, err = encode(r)
	}
	return text, err
}

func encode(r report.Report) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // people read reports
	err := encoder.Encode(r)
	return visible.JSON(text.Bytes()), err
}
