package machine

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime returns the time since the boot, also that in which the machine was suspended.
func Uptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil { // never on a supported kernel
		return 0
	}
	return time.Duration(now.Nano())
}
