package catalog

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/machineadm/machineadm/contract/naming"
)

// Beside returns the directory of a program, links resolved, if it contains plugins, as after a build or in an unpacked archive
// does. It returns "" for a directory of system commands.
func Beside(program string) string {
	resolved, err := filepath.EvalSymlinks(program)
	dir := filepath.Dir(resolved)
	if err != nil || slices.Contains(commandDirectories(), dir) {
		return "" // the program can be deleted while it runs
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "" // the directory may be unreadable for this user
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
