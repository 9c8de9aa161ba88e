package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArchiveIsAddressedByContent(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, bytes.Repeat([]byte("x"), 100_000), 0o600))
	var packed bytes.Buffer
	images := []image{
		{name: "example.test/one:1", program: program, path: "/one"},
		{name: "example.test/two:2", program: program, path: "/usr/local/bin/two"},
	}
	require.NoError(t, archive(&packed, images))
	blobs, index := 0, ""
	for r := tar.NewReader(&packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		switch h.Name {
		case "index.json":
			index = string(data)
		case "oci-layout":
		default:
			assert.Equal(t, fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(data)), h.Name)
			blobs++
		}
	}
	assert.Equal(t, 6, blobs, "a layer, a configuration and a manifest of each")
	for _, i := range images {
		assert.Contains(t, index, `"io.containerd.image.name":"`+i.name+`"`)
	}
}
