//go:build !linux && !windows

package session

import "time"

// uptime returns 0: no plugin runs on this system.
func uptime() time.Duration { return 0 }
