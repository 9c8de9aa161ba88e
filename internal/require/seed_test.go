package require

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSeed(t *testing.T) {
	seed := func(name string) uint64 {
		t.Helper()
		seed, err := Seed(name)
		require.NoError(t, err)
		return seed
	}
	t.Setenv("MACHINEADM_SEED", "")
	t.Setenv("MACHINEADM_TIERS", "")
	assert.Equal(t, seed("a"), seed("a"), "a test has one seed")
	assert.NotEqual(t, seed("a"), seed("b"))
	t.Setenv("MACHINEADM_TIERS", "system,campaign")
	assert.NotEqual(t, seed("a"), seed("a"), "the campaign looks for new ones")
	t.Setenv("MACHINEADM_SEED", "7")
	assert.Equal(t, uint64(7), seed("a"))
	for _, text := range []string{"-7", "seven", "18446744073709551616"} {
		t.Setenv("MACHINEADM_SEED", text)
		_, err := Seed("a")
		require.ErrorContains(t, err, "MACHINEADM_SEED")
	}
}

func TestTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Second, "1": time.Second, "4": 4 * time.Second, "100": 100 * time.Second} {
		t.Setenv("MACHINEADM_TIMEOUT_FACTOR", text)
		assert.Equal(t, want, Timeout(time.Second), text)
	}
	for _, text := range []string{"0", "101", "-1", "1.5", "many"} {
		t.Setenv("MACHINEADM_TIMEOUT_FACTOR", text)
		assert.Panics(t, func() { Timeout(time.Second) }, text)
	}
}
