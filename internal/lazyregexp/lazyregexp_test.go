package lazyregexp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/internal/lazyregexp"
)

func TestNew(t *testing.T) {
	t.Parallel()
	digits := lazyregexp.New(`^[0-9]+$`)
	assert.True(t, digits().MatchString("12"))
	assert.Same(t, digits(), digits(), "compiled once")
	assert.Panics(t, func() { lazyregexp.New(`(`)() })
}
