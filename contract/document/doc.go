// Package document reads and writes document streams: the input of machineadm, many YAML documents in one file.
//
// # The stream
//
//   - At most MaxStreamBytes and MaxDocuments; a document nests at most MaxDepth mappings and lists and holds at most
//     MaxStructure of the characters that YAML makes structure of.
//   - UTF-8. A byte order mark may begin the stream or a document; its columns count without it. UTF-16 is refused.
//   - Lines end with LF or CRLF. Refused are a carriage return alone, the line breaks that YAML 1.1 alone knows (NEL, LS,
//     PS), control characters and byte order marks inside a document: in double quotes each has an escape.
//   - A line `---` begins a document and a line `...` ends one, also inside an unfinished value, as YAML says. A syntax
//     error therefore ends its own document and nothing else. Documents that are empty or hold only comments do not count.
//
// # A document
//
// A mapping with the fields apiVersion, kind, metadata and spec. In metadata, name is required; timeout (a Go duration
// above zero) and when (target.Selector) are optional. The spec is a mapping and belongs to whoever serves the kind, apart
// from provider. Names are unique within their kind in a stream.
//
// # Values
//
// A value is a mapping, a list, a string, an integer of 64 bits, a float, a boolean or null, and it becomes the same in
// JSON. Plain text is read as YAML 1.2 reads it: yes, no, on and off are strings, so is a timestamp. What versions
// of YAML read differently is refused rather than guessed: numbers with a leading zero, with an underscore or in
// binary. So are integers that do not fit 64 bits, infinities, NaN, binary values, anchors, aliases, merge keys, tags
// other than !!str, !!map and !!seq, duplicate keys and keys that are not strings.
//
// # Errors
//
// Every fault is reported, with file, line, column and field path, up to MaxErrors of a document and ten times that of a
// stream. No text quotes a value, because a value may be a secret; the name of a field may appear, escaped and shortened.
package document
