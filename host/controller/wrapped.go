package controller

import (
	"context"
	"errors"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/wrap"
)

// wrapped puts the documents that a machine starts with into the format of the config. Messages list the documents of the config.
func (w *work) wrapped(ctx context.Context, start, documents []emit.Document) (*wrap.Data, error) {
	f := &w.config.Spec.Format
	format := wrap.Format{Type: f.Type, Version: f.Version, Target: f.Target, MaxBytes: int(f.MaxBytes)}
	var err error
	if format.Template, err = w.userTemplate(ctx); err != nil {
		return nil, err
	}
	stream, err := emit.Stream(start)
	if err != nil {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidDocument, "%s", err)
	}
	data, err := w.r.wrapper.Wrap(format, stream)
	var large *wrap.TooLargeError
	var template *wrap.TemplateError
	switch {
	case errors.As(err, &large):
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonTooLarge, "%s", tooLarge(large, documents))
	case errors.As(err, &template):
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidFormat, "%s", templateFault(f.TemplateRef, err))
	case err != nil:
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonInvalidFormat, "%s", err)
	}
	return &data, nil
}

// userTemplate is the template of the data, nil if the config has none.
func (w *work) userTemplate(ctx context.Context) ([]byte, error) {
	ref := w.config.Spec.Format.TemplateRef
	if ref == nil {
		return nil, nil
	}
	value, err := w.reading.value(ctx, bootstrap.ConditionDocumentsValid, ref.Kind, ref.Name, templateKey(ref))
	return value, prefix(templateField, err)
}

func templateKey(ref *bootstrap.TemplateReference) string {
	if ref.Key == "" {
		return "value"
	}
	return ref.Key
}
