package v1alpha1

import "encoding/json"

// EncryptedConfig stands for the documents of an encrypted stream. They take its place.
type EncryptedConfig struct {
	Header
	// Spec holds the encrypted stream and says where its passphrase is.
	Spec EncryptedConfigSpec `json:"spec"`
}

// EncryptedConfigSpec holds an encrypted stream.
type EncryptedConfigSpec struct {
	Provider               string          `json:"provider"`
	PassphraseURI          string          `json:"passphraseURI"`
	Ciphertext             string          `json:"ciphertext"`
	Salt                   string          `json:"salt"`
	IV                     string          `json:"iv"`
	CipherAlgorithm        string          `json:"cipherAlgorithm"`
	DigestAlgorithm        string          `json:"digestAlgorithm"`
	Iterations             string          `json:"iterations"`
	KeyDerivationAlgorithm string          `json:"keyDerivationAlgorithm"`
	ProviderConfig         json.RawMessage `json:"providerConfig,omitempty"`
}
