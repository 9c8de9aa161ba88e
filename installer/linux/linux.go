// Package linux has what the packages add to the programs on Linux: systemd units, presets and maintainer scripts.
package linux

import "embed"

// Files are the units and presets by their paths below /usr/lib/systemd, and the scripts in scripts/.
//
//go:embed system system-preset scripts
var Files embed.FS
