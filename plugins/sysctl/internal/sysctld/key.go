// Package sysctld evaluates sysctl.d(5) configuration as the programs that apply it at boot do: systemd-sysctl(8) and
// procps' sysctl(8) --system. It reads files only through Source.
package sysctld

import (
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Key is a kernel parameter.
type Key = v1alpha1.SysctlKey

// simplify removes leading, repeated and trailing slashes and the segment ".": the path names the same file.
func simplify(path string) string {
	var kept []string
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	return strings.Join(kept, "/")
}
