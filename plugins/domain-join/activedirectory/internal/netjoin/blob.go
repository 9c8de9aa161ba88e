package netjoin

import (
	"bytes"
	"encoding/base64"
	"errors"
)

// provisioningData returns the data of an offline join as NetRequestOfflineDomainJoin takes it, which is the file that djoin.exe
// /provision /savefile writes: base64 in UTF-16 with a byte order mark. The document has that file as base64, or the text in it.
// Source: Samba, NetRequestOfflineDomainJoin_l.
func provisioningData(encoded []byte) ([]byte, error) {
	text := bytes.TrimSpace(encoded)
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(decoded, text)
	if err != nil || n == 0 {
		clear(decoded)
		return nil, errors.New("the data of the offline join is not base64") // not err: its offset counts in a secret
	}
	mark := []byte{0xff, 0xfe}
	if bytes.HasPrefix(decoded, mark) {
		return decoded[:n], nil
	}
	clear(decoded)
	data := make([]byte, 0, len(mark)+2*len(text)+2)
	data = append(data, mark...)
	for _, letter := range append(bytes.Clone(text), 0) {
		data = append(data, letter, 0)
	}
	return data, nil
}
