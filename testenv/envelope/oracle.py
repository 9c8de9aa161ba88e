"""Encrypts and decrypts EncryptedConfig documents with python3-cryptography, written from contract/SPEC.md.

Each line of standard input is a request, each line of standard output its answer, as JSON. A request has a document and a
passphrase (base64). With a plain text (base64) the answer is the document with a new salt, IV and ciphertext; without one it
is the plain text, or null if the document cannot be decrypted.
"""

import base64
import json
import os
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

IN_SPEC = ("provider", "passphraseURI", "cipherAlgorithm", "digestAlgorithm", "keyDerivationAlgorithm", "iterations", "salt")


def encode(data):
    return base64.b64encode(data).decode("ascii")


def decode(text):
    return base64.b64decode(text, validate=True)


def aead(document, passphrase):
    spec = document["spec"]
    kdf = PBKDF2HMAC(algorithm=hashes.SHA512(), length=32, salt=decode(spec["salt"]), iterations=int(spec["iterations"]))
    members = {name: spec[name] for name in IN_SPEC}
    members.update(apiVersion=document["apiVersion"], kind=document["kind"], name=document["metadata"]["name"])
    additional = json.dumps(members, sort_keys=True, separators=(",", ":")).encode("ascii")
    return AESGCM(kdf.derive(passphrase)), additional


def answer(document, passphrase, plain=None):
    spec = document["spec"]
    if plain is None:
        cipher, additional = aead(document, decode(passphrase))
        try:
            return encode(cipher.decrypt(decode(spec["iv"]), decode(spec["ciphertext"]), additional))
        except InvalidTag:
            return None
    iv = os.urandom(12)
    spec.update(salt=encode(os.urandom(16)), iv=encode(iv))
    cipher, additional = aead(document, decode(passphrase))
    spec["ciphertext"] = encode(cipher.encrypt(iv, decode(plain), additional))
    return document


for line in sys.stdin:
    print(json.dumps(answer(**json.loads(line))), flush=True)
