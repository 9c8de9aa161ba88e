package require

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
)

// Seed returns the seed of a test that makes random choices: the environment variable MACHINEADM_SEED in decimal, if that is set; else
// a random one for `make campaign`, which looks for new faults, and otherwise one that depends on the name alone, so that no run
// fails by chance. A test logs it, so that a failure can be repeated.
func Seed(name string) (uint64, error) {
	if text := os.Getenv("MACHINEADM_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the environment variable MACHINEADM_SEED: %w", err)
		}
		return seed, nil
	}
	if Everything() {
		return rand.Uint64(), nil
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(name)) // it returns no error
	return sum.Sum64(), nil
}
