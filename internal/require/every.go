package require

import (
	"os"
	"testing"
)

// Everything says whether a test tries every combination, as `make campaign` does, or those that find most in the time of `make test`.
func Everything() bool { return os.Getenv("MACHINEADM_TEST_EVERYTHING") == "1" }

// Campaign skips a test that `make campaign` alone runs, because others find what it finds.
func Campaign(t testing.TB) {
	t.Helper()
	if !Everything() {
		t.Skip("make campaign runs it")
	}
}
