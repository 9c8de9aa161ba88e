package v1alpha1

import "encoding/json"

// EncryptedConfig is an encrypted stream of documents, which takes the place of this document before anything is planned.
type EncryptedConfig struct {
	Header
	// Spec is the encrypted stream, and where its passphrase is.
	Spec EncryptedConfigSpec `json:"spec"`
}

// EncryptedConfigSpec is an encrypted stream, and where its passphrase is. The passphrase and the parameters give a key, and the
// key decrypts the ciphertext; the provider supplies the passphrase and never receives the ciphertext. Source: RFC 8018 and NIST SP
// 800-132 (PBKDF2), NIST SP 800-38D (AES-GCM), RFC 4648 section 4 (base64).
type EncryptedConfigSpec struct {
	// Provider names the plugin that supplies the passphrase, for example awskms.
	Provider DNSLabel `json:"provider"`
	// PassphraseURI is SCHEME://[ENCRYPTED@]LOCATION: where the passphrase is, or the encrypted passphrase and the key that
	// decrypts it, such as kms://ZW5jcnlwdGVk@arn:aws:kms:us-west-2:111122223333:key/1234abcd. It is not confidential.
	PassphraseURI string `json:"passphraseURI"`
	// Ciphertext is the encrypted stream and the 16 bytes of its authentication tag, as base64 with padding, without line breaks.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]{22,}={0,2}$`
	Ciphertext string `json:"ciphertext"`
	// Salt is 16 random bytes, other ones in each document, as base64 with padding.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]{22}==$`
	Salt string `json:"salt"`
	// IV is the initialization vector: 12 random bytes, other ones in each document, as base64 with padding.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]{16}$`
	IV string `json:"iv"`
	// CipherAlgorithm is the cipher: aes-256-gcm.
	//
	// +kubebuilder:validation:Enum=aes-256-gcm
	CipherAlgorithm string `json:"cipherAlgorithm"`
	// DigestAlgorithm is the digest of the key derivation: sha-512.
	//
	// +kubebuilder:validation:Enum=sha-512
	DigestAlgorithm string `json:"digestAlgorithm"`
	// Iterations is the number of iterations of the key derivation, from 50000 to 10000000, as a string. New documents have 210000.
	//
	// +kubebuilder:validation:Pattern=`^(?:[5-9][0-9]{4}|[1-9][0-9]{5,6}|10000000)$`
	Iterations string `json:"iterations"`
	// KeyDerivationAlgorithm derives the key from the passphrase: pbkdf2. The value hkdf-sha512 is reserved.
	//
	// +kubebuilder:validation:Enum=pbkdf2
	KeyDerivationAlgorithm string `json:"keyDerivationAlgorithm"`
	// ProviderConfig holds what only one provider supports; the README of the plugin lists its fields. It is not authenticated.
	ProviderConfig json.RawMessage `json:"providerConfig,omitempty"`
}
