package sdk

import (
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk/machine"
)

// systemDirectories belong to the operating system (SPEC G-14) and to the kernel. A link to /dev/null is how an administrator masks a
// file, also in an image without devices, where a write through it would create that file.
func systemDirectories() []string { return []string{"/usr", "/dev", "/proc", "/sys"} }

// Outside returns a final Precondition if a write to a path would change something in or below /usr or one of these directories, by its
// text or by links of the machine. File does this for the path of each file; a plan calls Outside for a file that only its changes can
// write. Windows: nil, because no write follows a link there.
func Outside(m Machine, path string, directories ...string) error {
	return permit(m.FS, path, directories)
}

// HostDirectories are the directories of the host and of the kernel, in which no document has a file.
func HostDirectories() []string {
	return []string{"/var/lib/machineadm", "/run/machineadm", "/etc/machineadm", "/run/cluster-api", "/proc", "/sys", "/dev"}
}

func permit(files *machine.FS, path string, outside []string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	reached, err := files.Reaches(path, slices.Concat(outside, systemDirectories())...)
	if err != nil || reached == "" {
		return err
	}
	message := "the file is in or below " + reached + ", where this document must not write"
	if path != reached && !strings.HasPrefix(path, reached+"/") {
		message = "a link of this machine leads from the path of the file to " + reached + ", where this document must not write"
	}
	return Final(Precondition(message, "choose another path, or correct the link; namei -l "+path+" shows every link"))
}
