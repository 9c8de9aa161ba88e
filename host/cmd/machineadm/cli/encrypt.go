package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

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

// encryptFlags are the flags of encrypt and decrypt.
type encryptFlags struct {
	path, name, provider, key string
	config, encrypterConfig   string
	show                      bool
}

func newEncrypt(g *globals, s streams) *cobra.Command {
	o := &encryptFlags{}
	c := &cobra.Command{
		Use: "encrypt --path FILE --name NAME --provider PROVIDER --key KEY", Args: noArguments,
		Short: "Encrypt a stream into an EncryptedConfig document",
		Long: "encrypt validates a stream and writes it to standard output as an EncryptedConfig document. The plugin of the provider\n" +
			"makes the passphrase, which the key protects. A machine decrypts the document with the same provider.",
		Example: "  machineadm encrypt -f node.yaml --name node --provider file --key /etc/machineadm/node.key >node.encrypted.yaml",
		RunE:    func(c *cobra.Command, _ []string) error { return g.encrypt(c.Context(), s, o) },
	}
	c.Flags().StringVarP(&o.path, "path", "f", "", "the stream's `FILE`, or - for standard input")
	c.Flags().StringVar(&o.name, "name", "", "`NAME` of the document")
	c.Flags().StringVar(&o.provider, "provider", "", "`PROVIDER` of the passphrase, such as file or vault")
	c.Flags().StringVar(&o.key, "key", "", "`KEY` that protects the passphrase, in the form of the provider")
	c.Flags().StringVar(&o.config, "provider-config", "", "`FILE` with spec.providerConfig of the document, in YAML")
	c.Flags().StringVar(&o.encrypterConfig, "encrypter-config", "",
		"`FILE` like --provider-config, to make the passphrase with: credentials that the machine does not have, and the document does not get")
	return c
}

func newDecrypt(g *globals, s streams) *cobra.Command {
	o := &encryptFlags{}
	c := &cobra.Command{
		Use: "decrypt --path FILE", Short: "Decrypt an EncryptedConfig document", Args: noArguments,
		Long: "decrypt writes the stream in an EncryptedConfig document to standard output. It holds what the document protects:\n" +
			"a terminal shows it only with --show.",
		Example: "  machineadm decrypt -f node.encrypted.yaml | machineadm validate -f -",
		RunE:    func(c *cobra.Command, _ []string) error { return g.decrypt(c.Context(), s, o) },
	}
	c.Flags().StringVarP(&o.path, "path", "f", "", "`FILE` of the document, or - for standard input")
	c.Flags().StringVar(&o.name, "name", "", "`NAME` of the document, if the file holds several")
	c.Flags().BoolVar(&o.show, "show", false, "write to a terminal, too")
	return c
}

func (g *globals) encrypt(ctx context.Context, s streams, o *encryptFlags) error {
	for _, f := range []struct{ name, value string }{{"path", o.path}, {"name", o.name}, {"provider", o.provider}, {"key", o.key}} {
		if f.value == "" {
			return usage("--" + f.name + " is required")
		}
	}
	if err := errors.Join(naming.ValidName(o.name), naming.ValidProvider(o.provider)); err != nil {
		return usage("--name or --provider " + err.Error())
	}
	config, err := readProviderConfig("--provider-config", o.config)
	if err != nil {
		return err
	}
	own := config
	if o.encrypterConfig != "" {
		if own, err = readProviderConfig("--encrypter-config", o.encrypterConfig); err != nil {
			return err
		}
	}
	plain, err := session.Read(ctx, g.timeout, o.path, s.in)
	if err != nil {
		return &exitError{code: report.ExitUsage, message: "read " + session.StreamName(o.path) + ": " + err.Error()}
	}
	if err := g.validatePlain(ctx, s, o, plain); err != nil {
		return err
	}
	if err := o.permitted(plain); err != nil {
		return err
	}
	return g.withKeys(ctx, s, o.provider, func(ctx context.Context, machine target.Target, p *launch.Plugin) error {
		if !slices.Contains(p.Description.Capabilities, pluginv1.CapabilityNewPassphrase) {
			return &exitError{code: report.ExitPrecondition, message: "the provider " + o.provider + " makes no passphrases", hint: "name one that does: machineadm plugins inspect"}
		}
		made, err := p.Keys.NewPassphrase(ctx, pluginv1.NewPassphraseRequest{Key: o.key, Target: machine, ProviderConfig: own})
		if err != nil {
			return pluginFailure(o.provider, err)
		}
		sealed, err := envelope.Seal(o.name, o.provider, made.URI, config, made.Passphrase, plain)
		clear(made.Passphrase)
		if err != nil {
			return pluginFailure(o.provider, err)
		}
		return o.write(ctx, s, machine, p, sealed)
	})
}

// write writes a document which the machine's plugin accepts.
func (o *encryptFlags) write(ctx context.Context, s streams, machine target.Target, p *launch.Plugin, sealed v1alpha1.EncryptedConfig) error {
	var text bytes.Buffer
	if err := document.Encode(&text, sealed); err != nil {
		return err
	}
	raw, want, err := o.find(text.Bytes())
	if err != nil {
		return err
	}
	_, err = resolve.Decrypt(ctx, p.Keys, envelope.NewOpener(), want, resolve.Request{Document: raw, Target: machine, ValidateOnly: true})
	if err != nil {
		return pluginFailure(o.provider, err)
	}
	_, err = s.out.Write(text.Bytes())
	return err
}

// validatePlain validates a stream before it is encrypted, because its errors are not visible afterwards.
func (g *globals) validatePlain(ctx context.Context, s streams, o *encryptFlags, plain []byte) error {
	quiet := streams{in: bytes.NewReader(plain), out: io.Discard, err: s.err, width: s.width}
	return g.validate(ctx, quiet, &applyFlags{path: o.path, phase: "all", output: "text"})
}

// permitted refuses documents that a machine refuses within the EncryptedConfig, although a stream of its own may have them.
func (o *encryptFlags) permitted(plain []byte) error {
	decoded, err := document.Decode(session.StreamName(o.path), bytes.NewReader(plain))
	if err != nil {
		return &exitError{code: report.ExitUsage, message: err.Error()}
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
		if err == nil && d.Kind == v1alpha1.KindEncryptedConfig && d.Name == o.name {
			err = &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Violations: []document.Violation{{
				Field: "metadata.name", Message: "is also that of the document which stands for the stream",
				Hint: "choose another --name: every document of a kind has its own, also across streams",
			}}}
		}
		if err != nil {
			e := pluginv1.AsError(err)
			e.Message, e.Violations = "", append(e.Violations, document.Violation{Message: e.Message})[:1]
			return &exitError{
				code: report.ExitCode(e.Code.String()), hint: cmp.Or(e.Violations[0].Hint, e.Hint),
				message: fmt.Sprintf("%s:%d: %s/%s: %s", session.StreamName(o.path), d.Position.Line, d.Kind, d.Name, e.Error()),
			}
		}
	}
	return nil
}

// readProviderConfig returns the YAML file of a flag as JSON, nil for none.
func readProviderConfig(flag, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return nil, usage(flag + ": " + err.Error())
	}
	config, err := document.JSON(path, text)
	if err == nil && !bytes.HasPrefix(config, []byte("{")) {
		err = errors.New(path + " is not a YAML mapping")
	}
	if err != nil {
		return nil, usage(flag + ": " + err.Error())
	}
	return config, nil
}

func (g *globals) decrypt(ctx context.Context, s streams, o *encryptFlags) error {
	if o.path == "" {
		return usage("--path is required")
	}
	if !o.show && isTerminal(s.out) {
		return usage("standard output is a terminal, which would show what the document protects: redirect it, or pass --show")
	}
	data, err := session.Read(ctx, g.timeout, o.path, s.in)
	if err != nil {
		return &exitError{code: report.ExitUsage, message: "read " + session.StreamName(o.path) + ": " + err.Error()}
	}
	raw, want, err := o.find(data)
	if err != nil {
		return err
	}
	return g.withKeys(ctx, s, want.Spec.Provider, func(ctx context.Context, machine target.Target, p *launch.Plugin) error {
		plain, err := resolve.Decrypt(ctx, p.Keys, envelope.NewOpener(), want, resolve.Request{Document: raw, Target: machine})
		if err != nil {
			return pluginFailure(want.Spec.Provider, err)
		}
		_, err = s.out.Write(plain)
		return err
	})
}

// find returns the EncryptedConfig document of a stream, the one of this name if there are several.
func (o *encryptFlags) find(data []byte) (raw []byte, want v1alpha1.EncryptedConfig, err error) {
	decoded, err := document.Decode(session.StreamName(o.path), bytes.NewReader(data))
	if err != nil {
		return nil, want, &exitError{code: report.ExitUsage, message: err.Error()}
	}
	if len(decoded.Errors) > 0 {
		return nil, want, &exitError{code: report.ExitUsage, message: decoded.Errors[0].Error(), hint: decoded.Errors[0].Hint}
	}
	found := slices.DeleteFunc(decoded.Documents, func(d *document.Document) bool {
		return d.APIVersion != v1alpha1.APIVersion || d.Kind != v1alpha1.KindEncryptedConfig || o.name != "" && d.Name != o.name
	})
	switch {
	case len(found) == 0:
		return nil, want, usage(session.StreamName(o.path) + " holds no such EncryptedConfig document")
	case len(found) > 1:
		return nil, want, usage(session.StreamName(o.path) + " holds several EncryptedConfig documents: choose one with --name")
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
func (g *globals) withKeys(
	ctx context.Context, s streams, provider string, use func(context.Context, target.Target, *launch.Plugin) error,
) error {
	options, err := g.session(s)
	if err != nil {
		return err
	}
	where, err := session.Open(ctx, options)
	if err != nil {
		return err
	}
	defer where.Close()
	fleet, err := where.Fleet()
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
	limited, cancel := context.WithTimeout(ctx, min(g.timeout, run.PlanTimeout))
	defer cancel()
	return use(limited, where.Target, plugin)
}

// pluginFailure returns an error of the contract with the exit code that a run has.
func pluginFailure(provider string, err error) *exitError {
	if errors.Is(err, context.DeadlineExceeded) { // also before the timer of this process: gRPC sends the deadline to the plugin
		return &exitError{
			code: report.ExitDeadline, message: "provider " + provider + ": no answer in time",
			hint: fmt.Sprintf("check that this machine reaches the service of the provider; --timeout limits the wait, to at most %s", run.PlanTimeout),
		}
	}
	e := pluginv1.AsError(err)
	out := &exitError{code: report.ExitCode(e.Code.String()), message: "provider " + provider + ": " + e.Error(), hint: e.Hint}
	if out.hint == "" && len(e.Violations) > 0 {
		out.hint = e.Violations[0].Hint
	}
	return out
}
