package download

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/install"
	"github.com/machineadm/machineadm/installer/manifest"
	machine "github.com/machineadm/machineadm/internal/require"
)

// bed is a release in a directory, and a directory to install it into.
type bed struct {
	t        testing.TB
	key      manifest.PrivateKey
	from, to string
	warnings []string
}

func newBed(t testing.TB) *bed {
	t.Helper()
	dir := t.TempDir()
	return &bed{t: t, key: NewKey(t), from: filepath.Join(dir, "from"), to: filepath.Join(dir, "to")}
}

// write writes a release.
func (b *bed) write(r Release) *bed {
	b.t.Helper()
	r.Key = b.key
	r.Write(b.t, b.from)
	return b
}

// install installs from the directory.
func (b *bed) install(change ...func(*install.Options)) (install.Result, error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), machine.Timeout(time.Minute))
	defer cancel()
	o := install.Options{
		Locations: []string{b.from}, Keys: []manifest.Key{b.key.Public()}, To: b.to,
		Warn: func(message string) { b.warnings = append(b.warnings, message) },
	}
	for _, c := range change {
		c(&o)
	}
	return install.Install(ctx, o)
}

// installed installs, and requires success.
func (b *bed) installed(change ...func(*install.Options)) install.Result {
	b.t.Helper()
	result, err := b.install(change...)
	require.NoError(b.t, err)
	return result
}

// refused installs, requires an error with a code and a text, and that nothing has changed.
func (b *bed) refused(code int, text string, change ...func(*install.Options)) {
	b.t.Helper()
	before := tree(b.t, b.to)
	_, err := b.install(change...)
	failed := new(install.Error)
	require.ErrorAs(b.t, err, &failed)
	assert.Contains(b.t, failed.Problem, text)
	assert.Equal(b.t, code, failed.Code, failed.Problem)
	assert.NotEmpty(b.t, failed.Remedy)
	assert.Equal(b.t, before, tree(b.t, b.to), failed.Problem)
}

// limited installs until a time limit ends that, and returns the error and the warnings. The limit doubles until the error has a text: on a
// busy machine the first one ends before a server has answered.
func limited(t *testing.T, text string, o install.Options) (failed *install.Error, warnings []string) {
	t.Helper()
	for limit := time.Second; ; limit *= 2 {
		warnings = nil
		o.Warn = func(message string) { warnings = append(warnings, message) }
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		_, err := install.Install(ctx, o)
		cancel()
		require.ErrorAs(t, err, &failed)
		require.Equal(t, report.ExitDeadline, failed.Code, failed.Problem)
		if strings.Contains(failed.Problem, text) {
			return failed, warnings
		}
		require.Less(t, limit, machine.Timeout(30*time.Second), "%q is not in %q", text, failed.Problem)
	}
}

// tree lists the files below a directory, with modes, targets of links and digests of contents; empty if there is none.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		below, _ := filepath.Rel(dir, path)
		out.WriteString(info.Mode().String() + " " + below)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			out.WriteString(" -> " + to + "\n")
			return err
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			out.WriteString(" " + Digest(data)[:8] + "\n")
			return err
		}
		out.WriteString("\n")
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	return out.String()
}
