// Package encryption encrypts a stream into an EncryptedConfig document and decrypts one, with the plugin of a provider on this
// machine. Errors for the user are of the type *report.Error.
package encryption

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/envelope"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/resolve"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/session"
)

// Request is a stream to encrypt.
type Request struct {
	File           string // the stream's name in messages
	Stream         []byte
	Name, Provider string // of the document
	Key            string // protects the passphrase, in the form of the provider
	// Config is spec.providerConfig of the document, EncrypterConfig the one that makes the passphrase; JSON, nil for none.
	Config, EncrypterConfig []byte
}

// NewRequest returns the request of these flags of machineadm encrypt, without its stream. config and own are the YAML files of
// --provider-config and --encrypter-config, empty for none; without own, config makes the passphrase, too.
func NewRequest(name, provider, key, config, own string) (r Request, err error) {
	if err := errors.Join(naming.ValidName(name), naming.ValidProvider(provider)); err != nil {
		return r, &report.Error{Code: report.CodeUsage, Message: "--name or --provider " + err.Error()}
	}
	r = Request{Name: name, Provider: provider, Key: key}
	if r.Config, err = readConfig("--provider-config", config); err != nil {
		return r, err
	}
	r.EncrypterConfig = r.Config
	if own != "" {
		r.EncrypterConfig, err = readConfig("--encrypter-config", own)
	}
	return r, err
}

// readConfig returns the YAML file of a flag as JSON, nil for none.
func readConfig(flag, path string) (config []byte, err error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err == nil {
		config, err = document.JSON(path, text)
	}
	if err == nil && !bytes.HasPrefix(config, []byte("{")) {
		err = errors.New(path + " is not a YAML mapping")
	}
	if err != nil {
		return nil, &report.Error{Code: report.CodeUsage, Message: flag + ": " + err.Error()}
	}
	return config, nil
}

// Encrypt returns an EncryptedConfig document, which the plugin of this machine accepts.
func Encrypt(ctx context.Context, o session.Options, r Request) (text []byte, err error) {
	if err := r.permitted(); err != nil {
		return nil, err
	}
	err = withKeys(ctx, o, r.Provider, func(ctx context.Context, machine target.Target, p *launch.Plugin) error {
		text, err = r.encrypt(ctx, machine, p)
		return err
	})
	return text, err
}

func (r Request) encrypt(ctx context.Context, machine target.Target, p *launch.Plugin) ([]byte, error) {
	if !slices.Contains(p.Description.Capabilities, pluginv1.CapabilityNewPassphrase) {
		return nil, &report.Error{
			Code: pluginv1.CodePrecondition.String(), Message: "the provider " + r.Provider + " makes no passphrases",
			Hint: "name one that does: machineadm plugins inspect",
		}
	}
	made, err := p.Keys.NewPassphrase(ctx, pluginv1.NewPassphraseRequest{Key: r.Key, Target: machine, ProviderConfig: r.EncrypterConfig})
	if err != nil {
		return nil, pluginFailure(r.Provider, err)
	}
	sealed, err := envelope.Seal(r.Name, r.Provider, made.URI, r.Config, made.Passphrase, r.Stream)
	clear(made.Passphrase)
	if err != nil {
		return nil, pluginFailure(r.Provider, err)
	}
	var text bytes.Buffer
	if err := document.Encode(&text, sealed); err != nil {
		return nil, err
	}
	raw, want, err := find(r.File, text.Bytes(), r.Name)
	if err != nil {
		return nil, err
	}
	_, err = resolve.Decrypt(ctx, p.Keys, envelope.NewOpener(), want, resolve.Request{Document: raw, Target: machine, ValidateOnly: true})
	if err != nil {
		return nil, pluginFailure(r.Provider, err)
	}
	return text.Bytes(), nil
}

// Decrypt returns the stream in the EncryptedConfig document of this name, or in the only one of the file for an empty name.
func Decrypt(ctx context.Context, o session.Options, file string, data []byte, name string) (plain []byte, err error) {
	raw, want, err := find(file, data, name)
	if err != nil {
		return nil, err
	}
	err = withKeys(ctx, o, want.Spec.Provider, func(ctx context.Context, machine target.Target, p *launch.Plugin) error {
		plain, err = resolve.Decrypt(ctx, p.Keys, envelope.NewOpener(), want, resolve.Request{Document: raw, Target: machine})
		if err != nil {
			return pluginFailure(want.Spec.Provider, err)
		}
		return nil
	})
	return plain, err
}

// permitted refuses documents that a machine refuses within the EncryptedConfig, although a stream of its own may have them.
func (r Request) permitted() error {
	decoded, err := document.Decode(r.File, bytes.NewReader(r.Stream))
	if err != nil {
		return &report.Error{Code: pluginv1.CodeInvalidConfig.String(), Message: err.Error()}
	}
	for _, d := range decoded.Documents {
		if !resolve.IsReference(d.APIVersion, d.Kind) {
			continue
		}
		raw, err := d.JSON()
		if err != nil {
			return err
		}
		want, err := resolve.Check(d.Kind, raw)
		if err == nil {
			err = resolve.Permitted(want, false)
		}
		if err == nil && d.Kind == v1alpha1.KindEncryptedConfig && d.Name == r.Name {
			err = &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Violations: []document.Violation{{
				Field: "metadata.name", Message: "is also the name of the reference to the stream",
				Hint: "choose another --name: every document of a kind has its own, also across streams",
			}}}
		}
		if err != nil {
			e := pluginv1.AsError(err)
			e.Message, e.Violations = "", append(e.Violations, document.Violation{Message: e.Message})[:1]
			return &report.Error{
				Code: e.Code.String(), Hint: cmp.Or(e.Violations[0].Hint, e.Hint),
				Message: fmt.Sprintf("%s:%d: %s/%s: %s", r.File, d.Position.Line, d.Kind, d.Name, e.Error()),
			}
		}
	}
	return nil
}

// find returns the EncryptedConfig document of a stream, the one of this name if there are several.
func find(file string, data []byte, name string) (raw []byte, want v1alpha1.EncryptedConfig, err error) {
	decoded, err := document.Decode(file, bytes.NewReader(data))
	if err != nil {
		return nil, want, &report.Error{Code: pluginv1.CodeInvalidConfig.String(), Message: err.Error()}
	}
	if len(decoded.Errors) > 0 {
		return nil, want, &report.Error{
			Code: pluginv1.CodeInvalidConfig.String(), Message: decoded.Errors[0].Error(), Hint: decoded.Errors[0].Hint,
		}
	}
	found := slices.DeleteFunc(decoded.Documents, func(d *document.Document) bool {
		return d.APIVersion != v1alpha1.APIVersion || d.Kind != v1alpha1.KindEncryptedConfig || name != "" && d.Name != name
	})
	switch {
	case len(found) == 0:
		return nil, want, &report.Error{Code: report.CodeUsage, Message: file + " holds no such EncryptedConfig document"}
	case len(found) > 1:
		return nil, want, &report.Error{Code: report.CodeUsage, Message: file + " holds several EncryptedConfig documents: choose one with --name"}
	}
	if raw, err = found[0].JSON(); err != nil {
		return nil, want, err
	}
	decodedAs, err := resolve.Check(v1alpha1.KindEncryptedConfig, raw)
	if err != nil {
		return nil, want, pluginFailure(found[0].Provider, err)
	}
	return raw, *decodedAs.(*v1alpha1.EncryptedConfig), nil //nolint:errcheck // by the kind
}

// withKeys calls use with the running plugin of a provider of passphrases. Its calls together have the time of one planning.
func withKeys(
	ctx context.Context, o session.Options, provider string, use func(context.Context, target.Target, *launch.Plugin) error,
) error {
	s, err := session.Open(ctx, o)
	if err != nil {
		return err
	}
	defer s.Close()
	fleet, err := s.Fleet()
	if err != nil {
		return err
	}
	binary := naming.Binary(v1alpha1.KindEncryptedConfig, provider)
	found, err := fleet.Find(binary)
	if err != nil {
		return launch.Failure(err.Error(), err)
	}
	plugin, err := fleet.Start(ctx, found)
	if err != nil {
		return launch.Failure("plugin "+binary+": "+err.Error(), err)
	}
	limited, cancel := context.WithTimeout(ctx, min(o.Timeout, run.PlanTimeout))
	defer cancel()
	return use(limited, s.Target, plugin)
}

// pluginFailure returns an error of the contract with the exit code that a run has.
func pluginFailure(provider string, err error) *report.Error {
	if errors.Is(err, context.DeadlineExceeded) { // also before the timer of this process: gRPC sends the deadline to the plugin
		return &report.Error{
			Code: report.CodeDeadline, Message: "provider " + provider + ": no answer in time",
			Hint: fmt.Sprintf("check that this machine reaches the service of the provider; --timeout limits the wait, to at most %s", run.PlanTimeout),
		}
	}
	e := pluginv1.AsError(err)
	out := &report.Error{Code: e.Code.String(), Message: "provider " + provider + ": " + e.Error(), Hint: e.Hint}
	if out.Hint == "" && len(e.Violations) > 0 {
		out.Hint = e.Violations[0].Hint
	}
	return out
}
