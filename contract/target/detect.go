package target

// Detect detects the platform of the live machine (root is "" or "/") or of the image at root. A missing os-release file is
// not an error, see Target.Distribution. An unsupported operating system, and an image root on Windows, are
// errors.ErrUnsupported.
func Detect(root string) (Target, error) {
	return detect(root)
}
