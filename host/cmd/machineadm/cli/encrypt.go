package cli

import (
	"bytes"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/encryption"
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
	r, err := encryption.NewRequest(o.name, o.provider, o.key, o.config, o.encrypterConfig)
	if err != nil {
		return err
	}
	plain, err := session.Read(ctx, g.timeout, o.path, s.in)
	if err != nil {
		return &exitError{code: report.ExitUsage, message: "read " + session.StreamName(o.path) + ": " + err.Error()}
	}
	if err := g.validatePlain(ctx, s, o, plain); err != nil {
		return err
	}
	options, err := g.session(s)
	if err != nil {
		return err
	}
	r.File, r.Stream = session.StreamName(o.path), plain
	text, err := encryption.Encrypt(ctx, options, r)
	if err != nil {
		return err
	}
	_, err = s.out.Write(text)
	return err
}

// validatePlain validates a stream before it is encrypted, because its errors are not visible afterwards.
func (g *globals) validatePlain(ctx context.Context, s streams, o *encryptFlags, plain []byte) error {
	quiet := streams{in: bytes.NewReader(plain), out: io.Discard, err: s.err, width: s.width}
	return g.validate(ctx, quiet, &applyFlags{path: o.path, phase: "all", output: "text"})
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
	options, err := g.session(s)
	if err != nil {
		return err
	}
	plain, err := encryption.Decrypt(ctx, options, session.StreamName(o.path), data, o.name)
	if err != nil {
		return err
	}
	_, err = s.out.Write(plain)
	return err
}
