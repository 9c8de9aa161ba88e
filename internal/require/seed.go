package require

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a test that makes random choices, and logs how to repeat them. It is the environment variable
// MACHINEADM_SEED, in decimal, if that is set; else random for `make campaign`, which looks for new faults, and otherwise the same for
// each run of a test, so that no run fails by chance.
func Seed(t testing.TB) int64 {
	t.Helper()
	seed := defaultSeed(t)
	t.Logf("the seed is %d; repeat it: MACHINEADM_SEED=%[1]d go test -run '^%s$'", seed, t.Name())
	return seed
}

func defaultSeed(t testing.TB) int64 {
	t.Helper()
	if text := os.Getenv("MACHINEADM_SEED"); text != "" {
		seed, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatalf("MACHINEADM_SEED: %v", err)
		}
		return seed
	}
	if Everything() {
		return rand.Int64()
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(t.Name())) // it returns no error
	return int64(sum.Sum64() >> 1)     //nolint:gosec // 63 bits
}
