package store

import (
	"crypto/sha256"
	"encoding/hex"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// Claim is a MachineBootstrapDataClaim, by which the controller of a storage of others stores the documents.
type Claim struct {
	// Storage is the storage when the data was made.
	Storage bootstrap.StorageReference `json:"storage"`
	// SHA256 is the digest of the documents, in hex.
	SHA256 string `json:"sha256"`
	// Version is the resource version of the Secret whose RemoteConfig was handed out, empty before.
	Version string `json:"version,omitempty"`
}

// For records the digest of the documents.
func (c *Claim) For(stream []byte) {
	sum := sha256.Sum256(stream)
	c.SHA256 = hex.EncodeToString(sum[:])
}

// Spec is the spec of the claim for documents in a Secret.
func (c *Claim) Spec(secret string) bootstrap.MachineBootstrapDataClaimSpec {
	return bootstrap.MachineBootstrapDataClaimSpec{StorageRef: c.Storage, SecretName: secret, SHA256: c.SHA256}
}
