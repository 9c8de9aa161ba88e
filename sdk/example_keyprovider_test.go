package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// firmware gets passphrases from the firmware of a virtual machine. Its directory is /sys/firmware/qemu_fw_cfg/by_name.
type firmware struct{ dir string }

func (firmware) validate(k sdk.Key) []sdk.Violation {
	_, violations := sdk.ProviderConfig[struct{}](k.ProviderConfig)
	if !filepath.IsLocal(k.URI) {
		violations = append(violations, sdk.Violation{
			Field: "spec.passphraseURI", Message: "is not the name of an item", Hint: "name one such as opt/com.example/key",
		})
	}
	return violations
}

func (f firmware) passphrase(_ context.Context, k sdk.Key) (v1alpha1.Secret, error) {
	data, err := os.ReadFile(filepath.Join(f.dir, k.URI, "raw"))
	if errors.Is(err, fs.ErrNotExist) {
		return v1alpha1.Secret{}, sdk.Answered(sdk.Precondition("the firmware has no such item", "start the machine with it"), 404)
	}
	return v1alpha1.NewSecret(data), err
}

// This is a whole plugin that gets passphrases, in the file machineadm-plugin-encryption-provider-firmware. Its main is
//
//	func main() { sdk.Main(sdk.KeyProvider{...}) }
//
// Here a test calls it instead.
func ExampleKeyProvider() {
	f := firmware{dir: "testdata/qemu_fw_cfg"}
	keys := sdk.KeyProvider{
		Name: "firmware", Version: "1.0.0", OS: []string{runtime.GOOS}, Validate: f.validate, Passphrase: f.passphrase,
	}

	document := func(uri string) []byte {
		return []byte(`{"apiVersion":"machineadm.cluster.x-k8s.io/v1alpha1","kind":"EncryptedConfig","metadata":{"name":"x"},
			"spec":{"provider":"firmware","passphraseURI":"` + uri + `"}}`)
	}
	for _, uri := range []string{"opt/com.example/key", "opt/com.example/other", "../key"} {
		passphrase, err := sdk.NewKeyProvider(keys, runtime.GOOS).Passphrase(context.Background(), pluginv1.PassphraseRequest{
			Document: document(uri), Target: sdk.Target{OS: runtime.GOOS},
		})
		fmt.Printf("%d bytes, %v\n", len(passphrase), err)
	}
	// Output:
	// 28 bytes, <nil>
	// 0 bytes, Precondition: the firmware has no such item
	// 0 bytes, InvalidConfig: the document is not valid: spec.passphraseURI: is not the name of an item
}
