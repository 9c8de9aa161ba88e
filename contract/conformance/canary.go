package conformance

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
)

// placeholder is what a case writes where the canary goes.
const placeholder = "${canary}"

// newCanary is a word that occurs nowhere by chance.
func newCanary() string { return "canary" + rand.Text() }

// traces of a secret are the texts by which it is recognised.
type traces [][]byte

// tracesOf returns the word itself, in hexadecimal, and what base64 makes of its middle at each of the three places at
// which it can begin in what is encoded.
func tracesOf(word string) traces {
	out := traces{[]byte(word), []byte(hex.EncodeToString([]byte(word)))}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := encoding.EncodeToString(append(make([]byte, shift), word...))
			// The first and last characters also depend on the neighbours.
			out = append(out, []byte(text[4:len(text)-3]))
		}
	}
	return out
}

// in says whether a trace is in the data.
func (t traces) in(data []byte) bool {
	for _, trace := range t {
		if bytes.Contains(data, trace) {
			return true
		}
	}
	return false
}
