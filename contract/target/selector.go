// Package target answers which machine this is: operating system, distribution, version and architecture,
// for the live machine and for an image root.
package target

// Selector limits a document to some machines (metadata.when). An empty list matches every machine.
type Selector struct {
	// OS lists operating systems by their GOOS name, for example "linux".
	OS []string `json:"os,omitempty"`
	// Distributions lists os-release(5) IDs; an entry of ID_LIKE matches too.
	Distributions []string `json:"distributions,omitempty"`
	// Architectures lists processor architectures by their GOARCH name.
	Architectures []string `json:"architectures,omitempty"`
}
