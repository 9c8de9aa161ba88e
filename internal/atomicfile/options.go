package atomicfile

import "io/fs"

// Options say how the new file looks.
type Options struct {
	// Mode holds the permission bits, and set-user-ID, set-group-ID and sticky where wanted. They are set as given:
	// the umask takes nothing away. Windows has no such bits:  there, a file that gives others nothing (0600) has an access
	// list for SYSTEM, the Administrators and this user alone, and any other inherits the directory's.
	Mode fs.FileMode
	// Owner is who owns the new file; nil leaves it to the file system, which means the user of this process.
	Owner *Owner
	// KeepLabel carries the SELinux label of the file that is replaced over to the new one.
	KeepLabel bool
}

// Owner is a numeric user and group.
type Owner struct{ UID, GID int }
