package session

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
)

func TestStreamIsReadNoFurtherThanItMayBeLong(t *testing.T) {
	t.Parallel()
	data, err := readStream("-", bytes.NewReader(make([]byte, document.MaxStreamBytes+4096)))
	require.NoError(t, err)
	assert.Len(t, data, document.MaxStreamBytes+1)
}
