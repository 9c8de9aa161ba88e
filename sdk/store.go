package sdk

import (
	"bytes"
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
)

// Store implements pluginv1.Source.
func (s *source) Store(ctx context.Context, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	if r.ValidateOnly && r.Name == "" {
		r.Name = "name"
	}
	l, err := s.place(r.Storage, r.Name)
	if err != nil || r.ValidateOnly {
		return pluginv1.Stored{}, err
	}
	var made Reference
	if err := retrying(ctx, r.RetryFor, func() (err error) {
		made, err = s.Source.Store(ctx, l, NewObject{Data: r.Data, Expiry: r.Expiry, Report: r.Report})
		return unreachable(ctx, err)
	}); err != nil {
		return pluginv1.Stored{}, ofStorage(err)
	}
	stored := pluginv1.Stored{Provider: made.Provider, URI: made.URI, Expires: made.Expires}
	if r.Report {
		stored.ReportURI = made.ReportURI
	}
	if made.ProviderConfig == nil || reflect.ValueOf(made.ProviderConfig).IsZero() {
		return stored, nil
	}
	var text bytes.Buffer
	if err = document.Encode(&text, made.ProviderConfig); err == nil { // which, unlike encoding/json, encodes secrets
		stored.ProviderConfig, err = document.JSON("", text.Bytes())
	}
	if err != nil {
		return pluginv1.Stored{}, internal("the providerConfig of the reference cannot be encoded") // not err, which can quote it
	}
	return stored, nil
}

// Remove implements pluginv1.Source.
func (s *source) Remove(ctx context.Context, r pluginv1.RemoveRequest) error {
	l, err := s.place(r.Storage, r.Name)
	if err != nil {
		return err
	}
	return ofStorage(retrying(ctx, r.RetryFor, func() error { return unreachable(ctx, s.Source.Remove(ctx, l)) }))
}

// place validates a storage and returns the location of an object in it.
func (s *source) place(in pluginv1.Storage, name string) (Location, error) {
	if err := s.supports(in.Target); err != nil {
		return Location{}, err
	}
	if s.Source.Store == nil {
		return Location{}, Unsupported("", "provider "+s.name+" stores nothing", "")
	}
	if !regexp.MustCompile(`^[a-z0-9-]{1,200}$`).MatchString(name) {
		return Location{}, internal("the runtime sent a name of an object that is not valid")
	}
	l := Location{Target: in.Target, URI: in.URIPrefix + name, Field: "uriPrefix", Access: in.Access, ProviderConfig: in.ProviderConfig}
	var violations []Violation
	if in.URIPrefix == "" {
		violations = append(violations, Violation{Field: l.Field, Message: "is missing", Hint: "name the place of the objects, in the form of the provider"})
	}
	if !slices.Contains([]string{AccessRole, AccessPresigned}, l.Access) {
		violations = append(violations, Violation{Field: "access", Message: "is neither role nor presigned", Hint: "write one of the two"})
	}
	if s.Validate != nil {
		violations = document.Join(violations, s.Validate(l))
	}
	switch {
	case len(violations) > 0:
		return Location{}, ofStorage(InvalidConfig(violations...))
	case l.Access == AccessPresigned && !s.Presigns:
		return Location{}, Unsupported("access", "provider "+s.name+" has no presigned access", "write role, and give the machines the right to read the objects")
	}
	return l, nil
}

// ofStorage makes an error about the fields of a document one about the fields of a storage: it has no spec around them.
func ofStorage(err error) error {
	return fault.With(err, func(e *pluginv1.Error) {
		const of, bare = "spec.providerConfig", "providerConfig"
		e.Message, e.Hint = strings.ReplaceAll(e.Message, of, bare), strings.ReplaceAll(e.Hint, of, bare)
		e.Violations = slices.Clone(e.Violations)
		for i, v := range e.Violations {
			e.Violations[i] = Violation{
				Field: strings.ReplaceAll(v.Field, of, bare), Message: strings.ReplaceAll(v.Message, of, bare), Hint: strings.ReplaceAll(v.Hint, of, bare),
			}
		}
	})
}
