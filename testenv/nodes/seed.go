package nodes

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// seedDir is where cloud-init's NoCloud source looks without any medium or network.
const seedDir = "var/lib/cloud/seed/nocloud"

// disabledFlag keeps cloud-init from running (cloud-init: "disabling cloud-init"). The base system carries it, because
// cloud-init takes longer than all the rest of a boot and most tests do not need it.
const disabledFlag = "etc/cloud/cloud-init.disabled"

// CloudInitSeed makes cloud-init run at the first boot with the given user-data (with its "#cloud-config" or "#!" line).
// The instance is identified by the user-data: other user-data is another instance.
func CloudInitSeed(userData string) func(root string) error {
	return NoCloud(userData, fmt.Sprintf("instance-id: testenv-%x\n", sha256.Sum256([]byte(userData))))
}

// NoCloud makes cloud-init run at the first boot with the given user-data and meta-data.
func NoCloud(userData, metaData string) func(root string) error {
	return func(root string) error {
		dir := filepath.Join(root, seedDir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		files := map[string]string{"user-data": userData, "meta-data": metaData}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				return err
			}
		}
		if err := os.Remove(filepath.Join(root, disabledFlag)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
}

// InOrder joins several preparations into one, without those that are nil; the first error ends it.
func InOrder(steps ...func(root string) error) func(root string) error {
	return func(root string) error {
		for _, step := range steps {
			if step == nil {
				continue
			}
			if err := step(root); err != nil {
				return err
			}
		}
		return nil
	}
}
