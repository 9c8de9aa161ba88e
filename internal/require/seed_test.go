package require

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSeed(t *testing.T) {
	t.Setenv("MACHINEADM_SEED", "")
	t.Setenv("MACHINEADM_TEST_EVERYTHING", "")
	first := Seed(t)
	assert.Equal(t, first, Seed(t), "a test has one seed")
	t.Run("another test", func(t *testing.T) { assert.NotEqual(t, first, Seed(t)) })
	t.Setenv("MACHINEADM_TEST_EVERYTHING", "1")
	assert.NotEqual(t, first, Seed(t))
	assert.NotEqual(t, Seed(t), Seed(t), "the campaign looks for new ones")
	t.Setenv("MACHINEADM_SEED", "-7")
	assert.Equal(t, int64(-7), Seed(t))
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
