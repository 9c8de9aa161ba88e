// Package resolve gets the streams of RemoteConfig and EncryptedConfig documents, as bytes, by their plugins. It keeps nothing
// and decides nothing about the run.
package resolve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/envelope"
)

// The limits of a stream with the streams of all its references.
const (
	MaxDepth   = 8  // of a document within documents
	MaxFetches = 64 // objects and passphrases
)

// Request is a document and how it is resolved.
type Request struct {
	Document []byte // as JSON
	Target   target.Target
	MaxBytes int64 // of the result
	// RetryFor is how long the plugin may try again by itself before it answers Retry.
	RetryFor time.Duration
	// ValidateOnly finds the errors of the document, without a connection.
	ValidateOnly bool
}

// Check decodes a document that is resolved, and returns the errors in it that its plugin does not report: errors of the fields,
// a missing provider, and parameters of the encryption. The error is a *pluginv1.Error.
func Check(kind string, text []byte) (want any, err error) {
	want = v1alpha1.New(kind)
	violations := document.Unmarshal(text, want)
	var provider string
	switch d := want.(type) {
	case *v1alpha1.RemoteConfig:
		provider = d.Spec.Provider
		if d.Spec.SHA256 != "" && !isDigest(d.Spec.SHA256) {
			violations = append(violations, document.Violation{
				Field: "spec.sha256", Message: "is no SHA-256 digest", Hint: "write 64 hexadecimal digits in lower case, as sha256sum prints them",
			})
		}
	case *v1alpha1.EncryptedConfig:
		provider = d.Spec.Provider
		if err := envelope.Check(*d); err != nil {
			known := pluginv1.AsError(err)
			if known.Code != pluginv1.CodeInvalidConfig {
				return want, known
			}
			violations = document.Join(violations, known.Violations)
		}
	case *v1alpha1.ReportTarget:
		provider = d.Spec.Provider
	}
	if provider == "" {
		violations = document.Join(violations, []document.Violation{{
			Field: "spec.provider", Message: "is missing", Hint: "name the plugin: machineadm chooses none for this kind",
		}})
	}
	if len(violations) > 0 {
		return want, &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Message: "the document is not valid", Violations: violations}
	}
	return want, nil
}

func isDigest(text string) bool {
	digest, err := hex.DecodeString(text)
	return err == nil && len(digest) == sha256.Size && strings.ToLower(text) == text
}

// Fetch returns the object of a RemoteConfig and its revision.
func Fetch(ctx context.Context, source pluginv1.Source, want v1alpha1.RemoteConfig, r Request) ([]byte, string, error) {
	var data bytes.Buffer
	var revision string
	err := source.Fetch(ctx, pluginv1.FetchRequest{
		Document: r.Document, Target: r.Target, MaxBytes: r.MaxBytes, RetryFor: r.RetryFor, ValidateOnly: r.ValidateOnly,
	}, func(c pluginv1.Chunk) error {
		if c.Begin {
			data.Reset()
			revision = c.Revision
			return nil
		}
		_, err := data.Write(c.Data)
		return err
	})
	if err != nil || r.ValidateOnly {
		return nil, "", err
	}
	if sum := sha256.Sum256(data.Bytes()); want.Spec.SHA256 != "" && hex.EncodeToString(sum[:]) != want.Spec.SHA256 {
		return nil, "", &pluginv1.Error{
			Code: pluginv1.CodePrecondition, Final: true, Message: "the object has another digest than spec.sha256",
			Violations: []document.Violation{{
				Field: "spec.sha256", Message: "the object has another digest",
				Hint: "find out what changed the object, then correct the digest or put the object back",
			}},
		}
	}
	return data.Bytes(), revision, nil
}

// Decrypt returns the stream in an EncryptedConfig. It ends with the context.
func Decrypt(
	ctx context.Context, keys pluginv1.KeyProvider, opener *envelope.Opener, want v1alpha1.EncryptedConfig, r Request,
) ([]byte, error) {
	text, err := withoutCiphertext(r.Document)
	if err != nil {
		return nil, err
	}
	passphrase, err := keys.Passphrase(ctx, pluginv1.PassphraseRequest{
		Document: text, Target: r.Target, RetryFor: r.RetryFor, ValidateOnly: r.ValidateOnly,
	})
	if err != nil || r.ValidateOnly {
		return nil, err
	}
	plain, err := opener.Open(ctx, want, passphrase)
	clear(passphrase)
	return plain, err
}

// withoutCiphertext returns a document without spec.ciphertext, which can be large and is no concern of the plugin.
func withoutCiphertext(text []byte) ([]byte, error) {
	var whole, spec map[string]json.RawMessage
	if json.Unmarshal(text, &whole) != nil || json.Unmarshal(whole["spec"], &spec) != nil {
		return nil, errors.New("the document is not JSON")
	}
	delete(spec, "ciphertext")
	short, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	whole["spec"] = short
	return json.Marshal(whole)
}

// Absent reports whether the source answered that it has nothing for this machine: then what an earlier run fetched may be
// used.
func Absent(err error) bool {
	e, ok := errors.AsType[*pluginv1.Error](err)
	return ok && slices.Contains([]string{"401", "403", "404", "410"}, e.Facts[pluginv1.FactStatus])
}

// Permitted returns nil, or the error of a document that may be in the stream of a run but not in the stream of a reference.
// Only the stream of a run says where the report goes: it can do so when nothing can be resolved. An author in the network must
// not read files of the machine.
func Permitted(want any, fromNetwork bool) error {
	const file = "a stream from the network must not read files of the machine"
	const destination = "the stream of a reference must not say where the report goes"
	field, message := "", ""
	switch d := want.(type) {
	case *v1alpha1.RemoteConfig:
		switch {
		case d.Spec.Provider == fileProvider && fromNetwork:
			field, message = "spec.provider", file
		case d.Spec.Report != nil && d.Spec.Report.URI != "":
			field, message = "spec.report.uri", destination
		}
	case *v1alpha1.EncryptedConfig:
		if d.Spec.Provider == fileProvider && fromNetwork {
			field, message = "spec.provider", file
		}
	case *v1alpha1.ReportTarget:
		field, message = "kind", destination
	}
	if field == "" {
		return nil
	}
	return &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Message: message, Violations: []document.Violation{{
		Field: field, Message: message, Hint: "put this document into the stream that the machine is started with",
	}}}
}

// fileProvider is the name of the providers that read files of the machine.
const fileProvider = "file"

// FromNetwork reports whether the stream of a reference comes from the network.
func FromNetwork(want any) bool {
	d, ok := want.(*v1alpha1.RemoteConfig)
	return ok && d.Spec.Provider != fileProvider
}

// IsReference reports whether a document of this kind is resolved instead of applied.
func IsReference(apiVersion, kind string) bool {
	return apiVersion == v1alpha1.APIVersion && slices.Contains(v1alpha1.Kinds(), kind) && !slices.Contains(v1alpha1.MachineKinds(), kind)
}

// Key identifies a document and its place, for what is kept of it until the run succeeds. It is no secret, but reveals whether
// two documents are equal.
func Key(chain string, text []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s", chain, text))
	return hex.EncodeToString(sum[:])
}
