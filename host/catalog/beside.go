package catalog

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/machineadm/machineadm/contract/naming"
)

// Beside is the directory of a program, links resolved, if plugins lie in it: that of a build or an unpacked archive. It is
// empty for a directory in which the system keeps commands of all kinds.
func Beside(program string) string {
	resolved, err := filepath.EvalSymlinks(program)
	dir := filepath.Dir(resolved)
	if err != nil || slices.Contains(commandDirectories(), dir) {
		return "" // a program can be removed while it runs
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "" // or be started from a directory that this user cannot read
	}
	for _, e := range entries {
		if _, ok := naming.Trim(runtime.GOOS, e.Name()); ok {
			return dir
		}
	}
	return ""
}

func commandDirectories() []string {
	if runtime.GOOS == "windows" {
		return []string{`C:\Windows`, `C:\Windows\System32`}
	}
	return []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/bin"}
}
