//go:build !linux && !windows

package machine

import "time"

// Uptime returns 0: no plugin runs on this system.
func Uptime() time.Duration { return 0 }
