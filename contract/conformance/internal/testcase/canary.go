package testcase

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
)

// Placeholder is replaced by the canary in a case.
const Placeholder = "${canary}"

// NewCanary returns a random word.
func NewCanary() string { return "canary" + rand.Text() }

// Traces of a secret are the texts by which it is found.
type Traces [][]byte

// TracesOf returns the word, its hexadecimal form, and the base64 of its middle for each of the three offsets at which it
// can begin in an encoded text.
func TracesOf(word string) Traces {
	out := Traces{[]byte(word), []byte(hex.EncodeToString([]byte(word)))}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			text := encoding.EncodeToString(append(make([]byte, shift), word...))
			// The first and last characters also depend on the neighbours.
			out = append(out, []byte(text[4:len(text)-3]))
		}
	}
	return out
}

// In reports whether a trace is in the data.
func (t Traces) In(data []byte) bool {
	for _, trace := range t {
		if bytes.Contains(data, trace) {
			return true
		}
	}
	return false
}
