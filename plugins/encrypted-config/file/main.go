// Command machineadm-plugin-encryption-provider-file serves the passphrases of EncryptedConfig documents from files of the
// machine, such as one that the image or the hypervisor put there.
package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/trust"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(provider()) }

func provider() sdk.KeyProvider {
	return sdk.KeyProvider{
		Name: "file", Version: version.String(), OS: []string{"linux", "windows"},
		Validate: validate, Passphrase: passphrase, NewPassphrase: newPassphrase,
	}
}

const (
	field  = "spec.passphraseURI"
	scheme = "file"
)

// validate returns all violations of a key.
func validate(k sdk.Key) []sdk.Violation {
	_, all := sdk.ProviderConfig[struct{}](k.ProviderConfig)
	if _, ok := pathOf(k.URI); !ok {
		all = append(all, sdk.Violation{Field: field, Message: "is not the location of a local file", Hint: "write " + example})
	}
	return all
}

const example = "file:///PATH, on Windows file:///C:/PATH, without % and @"

// pathOf returns the path that a passphraseURI names.
func pathOf(uri string) (string, bool) {
	u, err := v1alpha1.ParsePassphraseURI(uri)
	if err != nil || u.Scheme != scheme || u.Encrypted != "" || strings.ContainsAny(u.Location, "%?#") {
		return "", false
	}
	path := u.Location
	if runtime.GOOS == "windows" {
		path = filepath.FromSlash(strings.TrimPrefix(path, "/"))
	}
	return path, filepath.IsAbs(path) && filepath.Clean(path) == path
}

// passphrase returns the bytes of the file, all of them: an editor's line end is a part of it.
func passphrase(_ context.Context, k sdk.Key) (v1alpha1.Secret, error) {
	path, _ := pathOf(k.URI) // validated
	data, err := read(path)
	if err != nil {
		return v1alpha1.Secret{}, sdk.At(err, field)
	}
	return v1alpha1.NewSecret(data), nil
}

// newPassphrase returns the passphrase in an existing file. The provider makes no file, because the machine that encrypts is
// rarely the one that decrypts.
func newPassphrase(ctx context.Context, k sdk.Key) (v1alpha1.Secret, string, error) {
	path := filepath.ToSlash(k.URI)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	uri := v1alpha1.PassphraseURI{Scheme: scheme, Location: path}.String()
	if _, ok := pathOf(uri); !ok {
		return v1alpha1.Secret{}, "", sdk.InvalidConfig(sdk.Violation{Message: "the key is not the absolute path of a file", Hint: "write a path without % and @"})
	}
	secret, err := passphrase(ctx, sdk.Key{Target: k.Target, URI: uri})
	return secret, uri, err
}

// read returns a file that only trusted users can change and only its owner can read.
func read(path string) (_ []byte, err error) {
	file, err := trust.Open(path, trust.Stream())
	if err != nil {
		return nil, refused(err)
	}
	defer func() { _ = file.Close() }() // only read from
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, sdk.Precondition("the file of the passphrase can be read by others", "chmod 0600, and replace the passphrase if they may have read it")
	}
	return io.ReadAll(io.LimitReader(file, pluginv1.MaxPassphraseBytes+1))
}

// refused explains why the file cannot be used. Its path is a value of the document.
func refused(err error) error {
	if untrusted, ok := errors.AsType[*trust.Error](err); ok {
		return sdk.WithDetail(sdk.Precondition("the file of the passphrase, or a directory above it, "+untrusted.Problem,
			"only trusted users may be able to change the file; details.json has the path"), untrusted.Error()+": "+untrusted.Remedy)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return sdk.Answered(sdk.Precondition("the file of the passphrase does not exist",
			"put the key file of the encrypted stream there, owned by root, with mode 0600"), http.StatusNotFound)
	}
	return sdk.WithDetail(sdk.Precondition("the file of the passphrase cannot be opened", "see details.json"), err.Error())
}
