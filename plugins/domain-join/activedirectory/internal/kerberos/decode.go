package kerberos

import (
	"errors"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/types"
)

type message interface{ Unmarshal(data []byte) error }

// unmarshal reads a message of the network.
func unmarshal(into message, data []byte) (err error) {
	defer recovered(&err)
	return into.Unmarshal(data)
}

// decrypt decrypts data of the network.
func decrypt(data []byte, key types.EncryptionKey, usage uint32) (plain []byte, err error) {
	defer recovered(&err)
	return crypto.DecryptMessage(data, key, usage)
}

// open reads the encrypted part of a message.
func open(into message, part types.EncryptedData, key types.EncryptionKey, usage uint32) error {
	plain, err := decrypt(part.Cipher, key, usage)
	if err != nil {
		return err
	}
	return unmarshal(into, plain)
}

// recovered turns a panic into an error: gokrb5 panics on a ciphertext that is shorter than its checksum, and anybody can send
// one before a controller is authenticated.
func recovered(err *error) {
	if recover() != nil {
		*err = errors.New("a message is malformed")
	}
}
