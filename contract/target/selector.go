// Package target answers which machine this is: operating system, distribution, version and architecture,
// for the live machine and for an image root.
package target

import "slices"

// OperatingSystems lists what Selector.OS can hold: the systems that the runtime is built for, by their GOOS name.
func OperatingSystems() []string { return []string{"linux", "windows"} }

// Architectures lists what Selector.Architectures can hold: those of these systems, by their GOARCH name.
func Architectures() []string {
	return []string{
		"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x",
	}
}

// Selector limits a document to some machines (metadata.when). An empty list matches every machine.
type Selector struct {
	// OS lists operating systems by their GOOS name: linux, windows.
	OS []string `json:"os,omitempty"`
	// Distributions lists os-release(5) IDs; an entry of ID_LIKE matches too.
	Distributions []string `json:"distributions,omitempty"`
	// Architectures lists processor architectures by their GOARCH name.
	Architectures []string `json:"architectures,omitempty"`
}

// Matches reports whether t is one of the selected machines. An entry of Distributions matches the ID of t or one of
// its ID_LIKE. Letters are compared exactly: all of these names are lower-case.
func (s Selector) Matches(t Target) bool {
	return among(s.OS, t.OS) && among(s.Architectures, t.Architecture) &&
		(among(s.Distributions, t.Distribution) || slices.ContainsFunc(t.Like, func(like string) bool {
			return among(s.Distributions, like)
		}))
}

func among(list []string, value string) bool {
	return len(list) == 0 || slices.Contains(list, value)
}
