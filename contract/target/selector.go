// Package target detects the platform of the live machine or of an image root: operating system, distribution, version and
// architecture.
package target

import "slices"

// OperatingSystems returns the valid values of Selector.OS: the supported GOOS names.
func OperatingSystems() []string { return []string{"linux", "windows"} }

// Architectures returns the valid values of Selector.Architectures: the GOARCH names of these systems.
func Architectures() []string {
	return []string{
		"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x",
	}
}

// Selector limits a document to some machines (metadata.when). An empty list matches every machine.
type Selector struct {
	// OS lists operating systems by their GOOS name: linux, windows.
	//
	// +kubebuilder:validation:items:Enum=linux;windows
	OS []string `json:"os,omitempty"`
	// Distributions lists os-release(5) IDs; an entry of ID_LIKE matches too.
	Distributions []string `json:"distributions,omitempty"`
	// Architectures lists processor architectures by their GOARCH name.
	//
	// +kubebuilder:validation:items:Enum="386";amd64;arm;arm64;loong64;mips;mips64;mips64le;mipsle;ppc64;ppc64le;riscv64;s390x
	Architectures []string `json:"architectures,omitempty"`
}

// Matches reports whether t is selected. The comparison is case-sensitive, because all names are lower-case.
func (s Selector) Matches(t Target) bool {
	return among(s.OS, t.OS) && among(s.Architectures, t.Architecture) &&
		(among(s.Distributions, t.Distribution) || slices.ContainsFunc(t.Like, func(like string) bool {
			return among(s.Distributions, like)
		}))
}

func among(list []string, value string) bool {
	return len(list) == 0 || slices.Contains(list, value)
}
