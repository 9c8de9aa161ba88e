package target

// Target is the machine, or the image root, that a run prepares. Every string is valid UTF-8.
type Target struct {
	// OS is the operating system by its GOOS name, for example "linux" or "windows".
	OS string
	// Architecture is the processor architecture by its GOARCH name. That of an image is read from its programs;
	// an image that has none is taken to have this process's.
	Architecture string
	// Distribution is ID of os-release(5), lower-case; "linux" where it says none, as os-release(5) wants it.
	// "windows" on Windows.
	Distribution string
	// Like is ID_LIKE of os-release(5), lower-case, the closest relative first.
	Like []string
	// Version is VERSION_ID of os-release(5), lower-case, empty for a rolling release. On Windows major.minor.build.
	Version string
	// Name is for people: PRETTY_NAME of os-release(5), or the product name of Windows.
	Name string
	// Kernel is the kernel's release as `uname -r` prints it; empty for an image root. On Windows the same as Version.
	Kernel string
	// Hostname is the machine's own name; empty for an image root.
	Hostname string
}

// Detect looks at the live machine (root is "" or "/"), or at the image whose root directory is root.
// A missing os-release file is no error, see Target.Distribution. On an operating system that is not supported, and for
// an image root on Windows, the error is errors.ErrUnsupported.
func Detect(root string) (Target, error) {
	return detect(root)
}
