package target

// Target is the platform of the machine or image root that a run prepares. Every string is valid UTF-8.
type Target struct {
	// OS is the operating system by its GOOS name, for example "linux" or "windows".
	OS string
	// Architecture is the processor architecture by its GOARCH name. That of an image is read from its programs; without
	// programs it is that of this process.
	Architecture string
	// Distribution is ID of os-release(5), lower-case, with its default "linux"; "windows" on Windows.
	Distribution string
	// Like is ID_LIKE of os-release(5), lower-case, the closest relative first.
	Like []string
	// Version is VERSION_ID of os-release(5), lower-case, empty for a rolling release. On Windows major.minor.build.
	Version string
	// Name is the display name: PRETTY_NAME of os-release(5), or the product name of Windows.
	Name string
	// Kernel is the kernel's release as `uname -r` prints it; empty for an image root. On Windows the same as Version.
	Kernel string
	// Hostname is the host name; empty for an image root.
	Hostname string
	// Init starts the services: "systemd", "openrc", "runit", "s6", or "none" for none of these; empty on Windows.
	Init string
}

// The values of Target.Init on Linux.
const (
	InitSystemd = "systemd"
	InitOpenRC  = "openrc"
	InitRunit   = "runit"
	InitS6      = "s6"
	InitNone    = "none"
)
