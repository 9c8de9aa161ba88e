package sdk

import "github.com/machineadm/machineadm/sdk/internal/files"

// Outside returns a final Precondition if a write to a path would change something in or below /usr or one of these directories, by its
// text or by links of the machine. File does this for the path of each file; a plan calls Outside for a file that only its changes can
// write. Windows: nil, because no write follows a link there.
func Outside(m Machine, path string, directories ...string) error {
	return files.Disk{FS: m.FS}.Permit(path, directories)
}

// HostDirectories are the directories of the host and of the kernel, in which no document has a file.
func HostDirectories() []string {
	return []string{"/var/lib/machineadm", "/run/machineadm", "/etc/machineadm", "/run/cluster-api", "/proc", "/sys", "/dev"}
}
