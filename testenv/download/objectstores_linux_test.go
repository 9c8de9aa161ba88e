package download

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/testenv/objectstores"
)

// TestObjectStores installs from buckets that everyone can read, and copies a release out of one.
//
//machineadm:core
func TestObjectStores(t *testing.T) {
	t.Parallel()
	b := newBed(t).write(Release{})
	s3, gcs := objectstores.StartS3(t, nil), objectstores.StartGCS(t, nil)
	files, err := os.ReadDir(b.from)
	require.NoError(t, err)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(b.from, f.Name()))
		require.NoError(t, err)
		s3.Put(t, "v1.0.0/"+f.Name(), data)
		gcs.Put(t, "v1.0.0/"+f.Name(), data)
	}
	b.refused(report.ExitPrecondition, s3.URL("v1.0.0/manifest.json")+": the server answers 403 Forbidden", at(s3.URL("v1.0.0")))

	// A signature of S3 is of one object, and a release has several.
	signed := s3.Presign(t, http.MethodGet, "v1.0.0/"+manifest.FileName, time.Minute)
	_, signature, _ := strings.Cut(signed, "?")
	b.refused(report.ExitPrecondition, s3.URL("v1.0.0/manifest.json.minisig")+": the server answers 403 Forbidden", at(signed, s3.URL("other/")+"?"+signature))
	for _, message := range b.warnings {
		assert.NotContains(t, message, "X-Amz-")
	}

	s3.AllowReading(t)
	for name, location := range map[string]string{"s3": s3.URL("v1.0.0"), "gcs": gcs.URL("v1.0.0/manifest.json")} {
		b.to = filepath.Join(t.TempDir(), name)
		assert.True(t, b.installed(at(location)).Changed)
		assert.Contains(t, b.read("bin/machineadm"), "v1.0.0")
	}
	b.to = filepath.Join(t.TempDir(), "copy")
	copied, err := b.mirror(gcs.URL("v1.0.0"))
	require.NoError(t, err)
	assert.Equal(t, 2, copied.Copied)
}
