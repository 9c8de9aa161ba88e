package wrap

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
)

// packed compresses data. The header has neither a time nor an operating system, so that the same data give the same bytes.
func (w *Wrapper) packed(data []byte) []byte {
	var out bytes.Buffer
	packer, reused := w.packers.Get().(*gzip.Writer)
	if !reused {
		packer = gzip.NewWriter(nil)
	}
	packer.Reset(&out)
	_, _ = packer.Write(data) // a bytes.Buffer does not fail
	_ = packer.Close()
	w.packers.Put(packer)
	return out.Bytes()
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

func dataURL(data []byte) string { return "data:;base64," + encoded(data) }

// quoted returns text as a string of JSON, which is a string of YAML as well.
func quoted(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string has a form in JSON
	return string(bytes.TrimSuffix(out.Bytes(), []byte("\n")))
}

// escaped returns text as the content of an element or of a quoted attribute.
func escaped(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a bytes.Buffer does not fail
	return out.String()
}
