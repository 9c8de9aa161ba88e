package require

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Timeout returns the upper limit of a wait for something real: a daemon, a node, a boot. It multiplies the limit by the environment
// variable MACHINEADM_TIMEOUT_FACTOR, a whole number from 1 to 100 that is 1 by default, because a busy machine takes a multiple of the usual
// time. It is not for pauses nor for lower limits, which make every run longer. A value that is no such number panics: it would
// otherwise be without effect.
func Timeout(d time.Duration) time.Duration {
	text, set := os.LookupEnv("MACHINEADM_TIMEOUT_FACTOR")
	if !set || text == "" {
		return d
	}
	factor, err := strconv.Atoi(text)
	if err != nil || factor < 1 || factor > 100 {
		panic(fmt.Sprintf("MACHINEADM_TIMEOUT_FACTOR is %q, not a whole number from 1 to 100", text))
	}
	return d * time.Duration(factor)
}
