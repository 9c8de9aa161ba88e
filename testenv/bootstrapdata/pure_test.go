package bootstrapdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/host/controller/wrap"
	prerequisite "github.com/machineadm/machineadm/internal/require"
)

// TestUnattend reads the answer file with libxml2, and joins the pieces as cmd and certutil do.
func TestUnattend(t *testing.T) {
	t.Parallel()
	xmllint := prerequisite.Tool(t, "xmllint")
	text := stream(t, false)
	file := filepath.Join(t.TempDir(), "unattend.xml")
	require.NoError(t, os.WriteFile(file, wrapped(t, wrap.Format{Type: "unattend"}, text), 0o600))
	xpath := func(expression string) string {
		out, err := exec.CommandContext(t.Context(), xmllint, "--nonet", "--xpath", expression, file).Output()
		require.NoError(t, err, expression)
		return strings.TrimSuffix(string(out), "\n")
	}
	const command = `/*[local-name()="unattend"]/*[@pass="specialize"]/*[@name="Microsoft-Windows-Deployment"]/*/*[local-name()="RunSynchronousCommand"]`
	var pieces string
	count := xpath("count(" + command + ")")
	for i := 1; ; i++ {
		at := fmt.Sprintf(`(%s)[%d]/*[local-name()="`, command, i)
		line := xpath("string(" + at + `Path"])`)
		if line == "" {
			assert.Equal(t, count, fmt.Sprint(i-1))
			break
		}
		assert.Equal(t, fmt.Sprint(i), xpath("string("+at+`Order"])`))
		assert.LessOrEqual(t, len(line), 259)
		if head, piece, ok := strings.Cut(line, " echo "); ok && strings.Contains(head, `\node.gz.b64"`) {
			pieces += piece + "\r\n"
		}
	}
	packed, err := base64.StdEncoding.DecodeString(pieces)
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(got))
}

// TestNoKubernetes: the pure packages are usable without the libraries of Kubernetes.
func TestNoKubernetes(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./host/controller/emit", "./host/controller/wrap")
	list.Dir = "../.."
	out, err := list.Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "/host/controller/wrap")
	assert.NotContains(t, string(out), "k8s.io/")
}
