package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/target"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/render"
)

// documents leads the sources back to documents of the contract, with the values of Secrets in them.
func (rd *reading) documents(ctx context.Context, sources []source) ([]emit.Document, error) {
	var all []emit.Document
	rd.spent, rd.structure = 0, 0
	for i := range sources {
		s := &sources[i]
		if len(all) >= emit.MaxDocuments {
			return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidOrder, "%s", &emit.CountError{})
		}
		if s.secret != "" {
			documents, err := rd.stream(ctx, s)
			if err != nil {
				return nil, err
			}
			all = append(all, documents...)
			continue
		}
		d, err := rd.document(ctx, s)
		if err != nil {
			return nil, err
		}
		all = append(all, *d)
	}
	return all, nil
}

// document leads one spec back.
func (rd *reading) document(ctx context.Context, s *source) (*emit.Document, error) {
	spec := s.spec
	if len(spec) == 0 {
		spec = []byte("{}")
	}
	if err := rd.spendText(ctx, spec); err != nil {
		return nil, err
	}
	var failed error
	made, err := render.Contract(s.apiVersion, s.kind, spec, func(secret, key string) ([]byte, error) {
		value, err := rd.value(ctx, bootstrap.ConditionPluginsReady, "Secret", secret, key)
		if err == nil {
			err = rd.spend(ctx, len(value)) // each time: a value that is referred to a thousand times is in the stream as often
		}
		if err != nil && failed == nil {
			failed = err
		}
		return value, err
	})
	switch {
	case failed != nil:
		return nil, prefix(s.where, failed)
	case err != nil:
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidDocument, "%s: %s", s.where, err)
	}
	metadata := contract.Metadata{Name: s.name, Timeout: s.placement.Timeout, When: selector(s.placement.When)}
	return &emit.Document{
		Header: contract.Header{APIVersion: s.apiVersion, Kind: s.kind, Metadata: metadata},
		Spec:   made, Bytes: len(spec), Before: s.placement.Before, After: s.placement.After,
	}, nil
}

func selector(s *bootstrap.Selector) *target.Selector {
	if s == nil {
		return nil
	}
	return &target.Selector{OS: s.OS, Distributions: s.Distributions, Architectures: s.Architectures}
}

// stream reads the documents that the controller of another group has left in a Secret. What the reference says of them goes
// before what they say.
func (rd *reading) stream(ctx context.Context, s *source) ([]emit.Document, error) {
	value, err := rd.value(ctx, bootstrap.ConditionPluginsReady, "Secret", s.secret, "value")
	if err != nil {
		return nil, prefix(s.where, err)
	}
	if err := rd.spendText(ctx, value); err != nil {
		return nil, err
	}
	documents, err := decoded("Secret/"+s.secret, value)
	if err != nil {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidDocument, "%s: %s", s.where, err)
	}
	for i := range documents {
		d := &documents[i]
		d.Before, d.After = s.before, s.after
		if s.placement.Timeout != "" {
			d.Metadata.Timeout = s.placement.Timeout
		}
		if s.placement.When != nil {
			d.Metadata.When = selector(s.placement.When)
		}
	}
	return documents, nil
}

// decoded reads a stream of a Secret. Its errors quote no value, and have no line, which would tell the length of values.
func decoded(file string, stream []byte) ([]emit.Document, error) {
	s, err := document.Decode(file, bytes.NewReader(stream))
	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // it names the file
	case len(s.Errors) > 0:
		return nil, emit.Unplaced(s.Errors[0])
	case len(s.Documents) == 0:
		return nil, errors.New(file + ": no document")
	}
	documents := make([]emit.Document, len(s.Documents))
	for i, d := range s.Documents {
		data, err := d.JSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		var body struct {
			contract.Header
			Spec json.RawMessage `json:"spec"`
		}
		if err := json.Unmarshal(data, &body); err != nil {
			return nil, fmt.Errorf("%s: document %d is not valid", file, i+1) // not %w: encoding/json quotes values
		}
		documents[i] = emit.Document{Header: body.Header, Spec: body.Spec}
	}
	return documents, nil
}
