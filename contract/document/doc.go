// Package document reads and writes document streams: the input of machineadm, many YAML documents in one file.
//
// # The stream
//
//   - At most MaxStreamBytes and MaxDocuments; a document nests at most MaxDepth mappings and lists and holds at most
//     MaxStructure structural characters.
//   - UTF-8. A byte order mark may start the stream or a document and is not counted as a column. UTF-16 is refused.
//   - Lines end with LF or CRLF. A lone carriage return, the line breaks of YAML 1.1 only (NEL, LS, PS), control
//     characters, and byte order marks inside a document are refused: in double quotes each has an escape.
//   - A line `---` starts a document and a line `...` ends one, also inside an unterminated value, as YAML specifies. A
//     syntax error therefore affects its own document only. Documents without content are not counted.
//
// # A document
//
// A mapping with the fields apiVersion, kind, metadata and spec. In metadata, name is required; timeout (a Go duration
// above zero) and when (target.Selector) are optional. The spec is a mapping; its fields except provider are defined by the
// kind. Names are unique within their kind in a stream.
//
// # Values
//
// A value is a mapping, a list, a string, a 64-bit integer, a float, a boolean or null, and has the same type in JSON.
// Plain scalars follow YAML 1.2: yes, no, on, off and timestamps are strings. Numbers that versions of YAML read
// differently are refused: with a leading zero, with an underscore, or binary. Also refused are integers beyond 64 bits,
// infinities, NaN, binary values, anchors, aliases, merge keys, tags other than !!str, !!map and !!seq, duplicate keys, and
// keys that are not strings.
//
// # Errors
//
// Decode reports every error with file, line, column and field path, up to MaxErrors per document and ten times as many per
// stream. No message quotes a value, because it may be a secret; a field name may appear, escaped and truncated.
package document
