package sdk

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// KeyProvider is a whole plugin that gets the passphrases of EncryptedConfig documents.
type KeyProvider struct {
	// Name is the provider: the last part of the binary's name.
	Name string
	// Version is the plugin's own version.
	Version string
	// OS lists the operating systems that the plugin serves, as GOOS.
	OS []string
	// Secrets are the field paths of the secrets in spec.providerConfig, such as "spec.providerConfig.token".
	Secrets []string
	// Validate returns the errors of a key that show without a connection, all of them. It is called before Passphrase, also for
	// a key whose URI is missing. Nil finds none.
	Validate func(k Key) []Violation
	// Passphrase returns the passphrase, 14 bytes to 4 KiB, as the bytes that are kept. An error of the network and one with the
	// code Retry are tried again for as long as the host permits, except that a certificate is refused at once.
	Passphrase func(ctx context.Context, k Key) (v1alpha1.Secret, error)
	// NewPassphrase returns a new passphrase that the key named k.URI protects, and the passphraseURI with which Passphrase
	// finds it again. Nil: the plugin makes none.
	NewPassphrase func(ctx context.Context, k Key) (passphrase v1alpha1.Secret, uri string, err error)
}

// Key is what an EncryptedConfig document names.
type Key struct {
	Target target.Target
	// URI is spec.passphraseURI; for NewPassphrase the key, in the form of the provider.
	URI string
	// ProviderConfig is spec.providerConfig, see the function ProviderConfig.
	ProviderConfig json.RawMessage
}

func (p KeyProvider) server(goos string) pluginv1.Describer { return NewKeyProvider(p, goos) }

// NewKeyProvider returns the plugin as the service of the protocol, for this GOOS. Main serves it; tests call it directly.
func NewKeyProvider(p KeyProvider, goos string) pluginv1.KeyProvider {
	return &keyProvider{KeyProvider: p, about: about{name: p.Name, version: p.Version, os: p.OS, goos: goos}}
}

type keyProvider struct {
	KeyProvider
	about
}

// Describe implements pluginv1.KeyProvider.
func (p *keyProvider) Describe(_ context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	var capabilities []string
	if p.KeyProvider.NewPassphrase != nil {
		capabilities = []string{pluginv1.CapabilityNewPassphrase}
	}
	return p.describe(r, p.Secrets, capabilities, v1alpha1.KindEncryptedConfig), nil
}

// Passphrase implements pluginv1.KeyProvider.
func (p *keyProvider) Passphrase(ctx context.Context, r pluginv1.PassphraseRequest) ([]byte, error) {
	if err := p.supports(r.Target); err != nil {
		return nil, err
	}
	if _, err := p.kindOf(r.Document, v1alpha1.KindEncryptedConfig); err != nil {
		return nil, err
	}
	var want v1alpha1.EncryptedConfig
	violations := document.Unmarshal(r.Document, &want)
	k := Key{Target: r.Target, URI: want.Spec.PassphraseURI, ProviderConfig: want.Spec.ProviderConfig}
	if strings.TrimSpace(k.URI) == "" {
		missing := Violation{Field: passphraseField, Message: "is missing", Hint: "name the passphrase, in the form of the provider"}
		violations = document.Join(violations, []Violation{missing})
	}
	if p.Validate != nil {
		violations = document.Join(violations, p.Validate(k))
	}
	if len(violations) > 0 {
		return nil, InvalidConfig(violations...)
	}
	if r.ValidateOnly {
		return nil, nil
	}
	var passphrase v1alpha1.Secret
	err := retrying(ctx, r.RetryFor, func() (err error) {
		passphrase, err = p.KeyProvider.Passphrase(ctx, k)
		return unreachable(ctx, err)
	})
	if err != nil {
		return nil, err
	}
	if !permitted(passphrase) {
		return nil, Final(At(Precondition("the passphrase has fewer than 14 bytes or more than 4 KiB",
			"encrypt the document again with a passphrase of a permitted length"), passphraseField))
	}
	return passphrase.Reveal(), nil
}

// NewPassphrase implements pluginv1.KeyProvider.
func (p *keyProvider) NewPassphrase(ctx context.Context, r pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
	if err := p.supports(r.Target); err != nil {
		return pluginv1.NewPassphrase{}, err
	}
	if p.KeyProvider.NewPassphrase == nil {
		return pluginv1.NewPassphrase{}, Unsupported("", "provider "+p.name+" makes no passphrases", "")
	}
	passphrase, uri, err := p.KeyProvider.NewPassphrase(ctx, Key{Target: r.Target, URI: r.Key, ProviderConfig: r.ProviderConfig})
	switch {
	case err != nil:
		return pluginv1.NewPassphrase{}, unreachable(ctx, err)
	case !permitted(passphrase):
		return pluginv1.NewPassphrase{}, internal("the new passphrase has fewer than 14 bytes or more than 4 KiB")
	}
	return pluginv1.NewPassphrase{Passphrase: passphrase.Reveal(), URI: uri}, nil
}

const passphraseField = "spec.passphraseURI"

// permitted reports whether the host accepts a passphrase of this length.
func permitted(s v1alpha1.Secret) bool {
	n := len(s.Reveal())
	return n >= pluginv1.MinPassphraseBytes && n <= pluginv1.MaxPassphraseBytes
}
