package launch

// identity changes whenever the content of a file changes. The kernel sets the change time on every write.
type identity struct {
	Device   uint64 `json:"device"`
	Inode    uint64 `json:"inode"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"`
	Changed  int64  `json:"changed"`
	// Beginning is the SHA-256 of the first bytes, which hold the linker's build ID. It distinguishes versions of a
	// read-only image, in which all times can be equal.
	Beginning string `json:"beginning"`
}
