package controller

import (
	"context"
	"fmt"

	"github.com/machineadm/machineadm/contract/pluginv1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/plugins"
	"github.com/machineadm/machineadm/host/controller/store"
	"github.com/machineadm/machineadm/host/controller/wrap"
	"github.com/machineadm/machineadm/host/envelope"
)

// encrypt returns the stream as the storage wants it. It is called once for each Secret, which keeps the result alone: a passphrase is made for
// it, and would be another one the next time.
func (w *work) encrypt(ctx context.Context, o *store.Object, stream []byte) ([]byte, error) {
	if w.storage.Encryption == nil {
		return stream, nil
	}
	var made pluginv1.NewPassphrase
	var by *bootstrap.StorageEncryption
	err := w.try(ctx, o, "make a passphrase by provider "+w.storage.Encryption.Provider, func(ctx context.Context, in *bootstrap.MachineBootstrapStorageSpec) error {
		if by = in.Encryption; by == nil { // it has changed meanwhile
			return nil
		}
		return w.r.Plugins.Keys(ctx, w.config.Namespace, by.Provider, func(ctx context.Context, k pluginv1.KeyProvider) (err error) {
			made, err = k.NewPassphrase(ctx, pluginv1.NewPassphraseRequest{Key: by.Key, Target: plugins.Here(), ProviderConfig: raw(by.ProviderConfig)})
			return err //nolint:wrapcheck // the caller says what it is for
		})
	})
	if err != nil {
		return nil, err
	}
	if by == nil {
		return nil, waiting(bootstrap.ConditionDataStored, bootstrap.ReasonWaiting, "%s %s has changed", bootstrap.KindMachineBootstrapStorage, o.Storage)
	}
	sealed, err := envelope.Seal(w.config.Name, by.Provider, made.URI, raw(by.MachineConfig), made.Passphrase, stream)
	if err != nil {
		return nil, fmt.Errorf("encrypt the documents: %w", err)
	}
	encrypted, err := emit.Stream([]emit.Document{{Header: sealed.Header, Spec: &sealed.Spec}})
	if err != nil {
		return nil, invalid(bootstrap.ConditionDataStored, bootstrap.ReasonInvalidStorage, "%s", err)
	}
	if len(encrypted)+referenceBytes > wrap.MaxSecret {
		return nil, invalid(bootstrap.ConditionDocumentsValid, bootstrap.ReasonTooLarge,
			"the encrypted documents have more than %d bytes, which with their reference is what a Secret holds: move files from the documents into the image", wrap.MaxSecret-referenceBytes)
	}
	return encrypted, nil
}

// referenceBytes is room for the user data that refers to an object, in the Secret that has its documents, too.
const referenceBytes = 64 << 10
