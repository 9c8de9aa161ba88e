package wine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/download"
)

// mirror copies releases from one directory to another: a new one, a damaged copy again, a newer one in its place, and no older one.
func mirror(t *testing.T, p prefix) {
	t.Helper()
	host := p.install(t, "mirror/machineadm.exe", "build", "./host/cmd/machineadm")
	key := download.NewKey(t)
	argv := []string{host, "mirror", "--from", `C:\mirror\from`, "--to", `C:\mirror\to`, "--key", key.Public().String()}
	release := func(r download.Release) {
		p.MustExec(t, "rm", "-rf", drive+"/mirror/from")
		dir := t.TempDir()
		r.Key = key
		r.Write(t, dir)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(dir, f.Name()))
			require.NoError(t, err)
			p.write(t, "mirror/from/"+f.Name(), string(text))
		}
	}
	release(download.Release{Version: "v1.0.0", Sequence: 1})
	assert.Contains(t, p.mustRun(t, argv...), `C:\mirror\to has the release v1.0.0: 2 files, 2 of them new`)
	p.MustExec(t, "diff", "-r", drive+"/mirror/from", drive+"/mirror/to")
	p.write(t, "mirror/to/machineadm-v1.0.0.spdx.json", "{!\n")
	assert.Contains(t, p.mustRun(t, argv...), "2 files, 1 of them new")
	p.MustExec(t, "diff", "-r", drive+"/mirror/from", drive+"/mirror/to")
	release(download.Release{Version: "v1.1.0", Sequence: 2})
	assert.Contains(t, p.mustRun(t, argv...), "has the release v1.1.0: 2 files, 2 of them new")
	p.MustExec(t, "cmp", drive+"/mirror/from/manifest.json", drive+"/mirror/to/manifest.json")
	release(download.Release{Version: "v1.0.0", Sequence: 1})
	older := p.run(t, argv...)
	assert.Equal(t, report.ExitUntrusted, older.ExitCode, older.Stderr)
	assert.Contains(t, older.Stderr, `has sequence 1, and v1.1.0 in C:\mirror\to has sequence 2`)
}
