package document

// The limits of a stream.
const (
	MaxStreamBytes = 16 << 20
	MaxDocuments   = 10000
	MaxDepth       = 64 // mappings and lists around a value
	MaxKeyBytes    = 1024
	// MaxStructure bounds the structural characters of a document (commas, colons, brackets, dashes, quotes, tags, anchors,
	// aliases, comments), because each costs the parser hundreds of bytes.
	MaxStructure = 200_000
	// MaxErrors bounds the reported errors of a document; a stream has ten times as many.
	MaxErrors = 100
)
