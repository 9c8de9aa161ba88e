package target

import (
	"os"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/machineadm/machineadm/internal/rooted"
)

// liveInit returns what booted the machine, by what it keeps below /run while it runs, as sd_booted(3) does, or by the
// name of PID 1. root is / but in a test.
func liveInit(root string) string {
	for _, booted := range []struct{ path, init string }{
		{"run/systemd/system", InitSystemd}, {"run/openrc/softlevel", InitOpenRC},
	} {
		if _, err := os.Stat(filepath.Join(root, booted.path)); err == nil {
			return booted.init
		}
	}
	name, _ := os.ReadFile(filepath.Join(root, "proc/1/comm")) // without /proc the name is empty, which is no known init system
	switch strings.TrimSpace(string(name)) {
	case "runit":
		return InitRunit
	case "s6-svscan":
		return InitS6
	}
	return InitNone
}

// imageInit returns what the image boots: what /sbin/init leads to, as far as its path says so, else what is installed.
// Links are followed inside the image.
func imageInit(root string) string {
	has := func(names ...string) bool {
		for _, name := range names {
			if file, err := rooted.Open(root, name); err == nil {
				_ = file.Close() // nothing was written
				return true
			}
		}
		return false
	}
	sbin, err := securejoin.SecureJoin(root, "/sbin")
	if first, missing := os.Readlink(filepath.Join(sbin, "init")); err == nil && missing == nil {
		for _, init := range []string{InitSystemd, InitOpenRC, InitRunit, InitS6} {
			if strings.Contains(first, init) {
				return init
			}
		}
	}
	switch {
	case has("/usr/lib/systemd/systemd", "/lib/systemd/systemd"):
		return InitSystemd
	case has("/sbin/openrc", "/usr/sbin/openrc"):
		return InitOpenRC
	case has("/sbin/runit", "/usr/bin/runit", "/usr/sbin/runit"):
		return InitRunit
	case has("/bin/s6-svscan", "/usr/bin/s6-svscan"):
		return InitS6
	}
	return InitNone
}
