package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/wrap"
)

const templateField = "spec.format.templateRef"

// shownSizes is how many documents a message about data that is too large lists.
const shownSizes = 5

// maxDocumentBytes and maxStructure bound the documents of a config, the bytes with the values of Secrets and before they are
// compressed: reading them takes memory and time.
const (
	maxDocumentBytes = 2 << 20
	maxStructure     = 400_000
)

// spendText counts a spec or a stream before it is read: each comma, bracket and the like takes about 2 µs.
func (rd *reading) spendText(ctx context.Context, text []byte) error {
	for _, c := range text {
		if strings.IndexByte(",:[]{}-\"'#&*!?|>", c) >= 0 {
			rd.structure++
		}
	}
	if rd.structure > maxStructure {
		return invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonTooLarge,
			"the documents have more than %d commas, colons, brackets, dashes, quotes and the like: move files from the documents into the image",
			maxStructure)
	}
	return rd.spend(ctx, len(text))
}

// hold counts a spec that the reconciliation holds.
func (rd *reading) hold(ctx context.Context, spec []byte) error {
	if rd.held += len(spec); rd.held > maxDocumentBytes {
		return tooManyBytes()
	} else if rd.held > lightBytes {
		return rd.turn.wait(ctx)
	}
	return nil
}

// spend counts bytes of documents before they are read.
func (rd *reading) spend(ctx context.Context, bytes int) error {
	if rd.spent += bytes; rd.spent > maxDocumentBytes {
		return tooManyBytes()
	} else if rd.spent > lightBytes {
		return rd.turn.wait(ctx)
	}
	return nil
}

func tooManyBytes() error {
	return invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonTooLarge,
		"the documents have more than %d bytes before compression, with the values of Secrets: move files from the documents into the image",
		maxDocumentBytes)
}

// tooLarge says what makes data too large. It has the sizes of specs, in which a Secret is a reference. The size of the data,
// or of a document with its values, would confirm guesses of a secret.
func tooLarge(e *wrap.TooLargeError, documents []emit.Document) string {
	sorted := slices.SortedStableFunc(slices.Values(documents), func(a, b emit.Document) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var list []string
	for i := range sorted[:min(len(sorted), shownSizes)] {
		d := &sorted[i]
		size := fmt.Sprint(d.Bytes)
		if d.Bytes == 0 {
			size = "not counted"
		}
		list = append(list, fmt.Sprintf("%s/%s %s", d.Kind, d.Metadata.Name, size))
	}
	if more := len(documents) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	remedy := "move files from the documents into the image"
	if e.Target != "" {
		remedy += ", or set format.maxBytes if the infrastructure accepts more"
	}
	return fmt.Sprintf("%s; bytes per document without the values of Secrets: %s: %s", e, strings.Join(list, ", "), remedy)
}

// templateFault is the message about an error of a template. That of a Secret has no detail: a user who may create a config could have
// any Secret read as a template.
func templateFault(ref *bootstrap.TemplateReference, err error) string {
	if ref.Kind == "Secret" {
		return fmt.Sprintf("%s: Secret %s: the template is not valid: a message about a Secret has no detail, try the template in a ConfigMap",
			templateField, ref.Name)
	}
	return fmt.Sprintf("%s: %s %s: %s", templateField, ref.Kind, ref.Name, err)
}

// documentBytes is the size of documents without the values of Secrets.
func documentBytes(documents []emit.Document) int {
	sum := 0
	for i := range documents {
		sum += documents[i].Bytes
	}
	return sum
}
