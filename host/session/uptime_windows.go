package session

import (
	"time"

	"golang.org/x/sys/windows"
)

// uptime returns the time since the boot, also that in which the machine was suspended.
func uptime() time.Duration { return windows.DurationSinceBoot() }
