package install

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/internal/trust"
)

// TrustedKeys returns the directory of the public keys that this machine trusts, *.pub.
func TrustedKeys() string {
	if runtime.GOOS == "windows" {
		return `C:\ProgramData\machineadm\trusted-keys`
	}
	return "/etc/machineadm/trusted-keys"
}

// maxKey bounds the file of a public key, in bytes.
const maxKey = 4096

// Keys returns the given public keys, each a key itself or a file; if none is given, the keys of dir. Only trusted users may be
// able to change a file.
func Keys(given []string, dir string) (keys []manifest.Key, err error) {
	for _, text := range given {
		key, err := manifest.ParseKey([]byte(text))
		if err != nil {
			key, err = readKey(text, trust.Stream())
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil, &Error{
				Code: report.ExitUsage, Problem: fmt.Sprintf("--key: %q is neither a minisign public key nor a file", text),
				Remedy: "give the 56 characters of the key, which start with RW, or the path of its file",
			}
		}
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(given) > 0 {
		return keys, nil
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.pub"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		key, err := readKey(path, trust.Settings())
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, &Error{
			Code: report.ExitUsage, Problem: "there is no key to verify the release with",
			Remedy: "give the publisher's minisign public key with --key, or put its file into " + dir + " as NAME.pub",
		}
	}
	return keys, nil
}

func readKey(path string, policy trust.Policy) (key manifest.Key, err error) {
	file, err := trust.Open(path, policy)
	if err == nil {
		defer func() { _ = file.Close() }() // opened for reading only
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(file, maxKey)); err == nil {
			key, err = manifest.ParseKey(text)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if refused, ok := errors.AsType[*trust.Error](err); ok {
		return key, &Error{Code: report.ExitUntrusted, Problem: "public key: " + refused.Error(), Remedy: refused.Remedy}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		err = &Error{Code: report.ExitUsage, Problem: "public key: " + err.Error(), Remedy: "replace it with a minisign public key, or remove it"}
	}
	return key, err
}
