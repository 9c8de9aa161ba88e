package machine

import (
	"time"

	"golang.org/x/sys/windows"
)

// Uptime returns the time since the boot, also that in which the machine was suspended.
func Uptime() time.Duration { return windows.DurationSinceBoot() }
