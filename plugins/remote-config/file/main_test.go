package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk"
)

func request(t testing.TB, uri string, config any) pluginv1.FetchRequest {
	t.Helper()
	spec := map[string]any{"provider": "file", "uri": uri}
	if config != nil {
		spec["providerConfig"] = config
	}
	doc, err := json.Marshal(map[string]any{
		"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "RemoteConfig", "metadata": map[string]any{"name": "a"}, "spec": spec,
	})
	require.NoError(t, err)
	return pluginv1.FetchRequest{Document: doc, Target: target.Target{OS: runtime.GOOS}, MaxBytes: 16 << 20}
}

func fetched(t testing.TB, r pluginv1.FetchRequest) (data []byte, revision string, err error) {
	t.Helper()
	err = sdk.NewSource(source(), runtime.GOOS).Fetch(t.Context(), r, func(c pluginv1.Chunk) error {
		if c.Begin {
			revision = c.Revision
		}
		data = append(data, c.Data...)
		return nil
	})
	return data, revision, err
}

// TestFetch: a path and the URL of a file name the same object, whose revision is the time of its last change.
func TestFetch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "a stream.yaml")
	content := bytes.Repeat([]byte("0123456789\n"), 100<<10)
	require.NoError(t, os.WriteFile(file, content, 0o600))
	require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(1767225600, 0)))
	slashed := filepath.ToSlash(file)
	if runtime.GOOS == "windows" {
		slashed = "/" + slashed
	}
	for _, uri := range []string{file, "file://" + slashed, "FILE:" + filepath.ToSlash(filepath.Dir(slashed)) + "/a%20stream.yaml"} {
		data, revision, err := fetched(t, request(t, uri, nil))
		require.NoError(t, err, uri)
		assert.True(t, bytes.Equal(content, data))
		assert.Equal(t, "2026-01-01T00:00:00Z", revision)
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{
		"c4n4ry", "./c4n4ry", "~/c4n4ry", "https://a.example/c4n4ry", "file://host/c4n4ry", "file://c4n4ry", "file:c4n4ry", "file:///c4n4ry?x",
		"file:///c4n4ry#x", "file:///c4n4ry%00", "file:///%zz", "/c4n4ry\x00", "file:", "file://",
	} {
		_, _, err := fetched(t, request(t, uri, nil))
		e := pluginv1.AsError(err)
		require.Equal(t, pluginv1.CodeInvalidConfig, e.Code, uri)
		require.Len(t, e.Violations, 1)
		assert.Equal(t, "spec.uri", e.Violations[0].Field)
		assert.NotContains(t, fmt.Sprint(e.Violations), "c4n4ry")
	}
	_, _, err := fetched(t, request(t, "c4n4ry", map[string]any{"user": "c4n4ry"}))
	assert.Len(t, pluginv1.AsError(err).Violations, 2, "all at once")
}

// TestUntrusted: the rules of a stream that is given to the host. The path is in the details alone.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" { // other rules, which internal/trust tests
		return
	}
	dir := filepath.Join(t.TempDir(), "c4n4ry")
	require.NoError(t, os.Mkdir(dir, 0o755))
	file := filepath.Join(dir, "stream")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(file, filepath.Join(dir, "link")))
	shared := filepath.Join(dir, "shared")
	require.NoError(t, os.Mkdir(shared, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(shared, "stream"), nil, 0o600))
	require.NoError(t, os.Chmod(shared, 0o777)) //nolint:gosec // that is the point
	open := filepath.Join(dir, "open")
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	require.NoError(t, os.Chmod(open, 0o666)) //nolint:gosec // that is the point
	for path, want := range map[string]string{
		"link":          "is a link",
		"open":          "can be written by its group and everyone",
		"shared/stream": "can be written by its group and everyone",
		"absent":        "the file does not exist",
		"absent/x":      "the file does not exist",
		"":              "the file is a directory",
		"stream/x":      "the file cannot be opened: not a directory",
	} {
		_, _, err := fetched(t, request(t, filepath.Join(dir, path), nil))
		e := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodePrecondition, e.Code, path)
		assert.Contains(t, e.Message, want)
		assert.NotContains(t, e.Message+e.Hint+fmt.Sprint(e.Violations, e.Facts), "c4n4ry")
		assert.Contains(t, e.Detail, "c4n4ry")
		assert.Equal(t, want == "the file does not exist", e.Facts[pluginv1.FactStatus] == "404")
	}
	_, _, err := fetched(t, request(t, "/dev/null", nil))
	assert.Contains(t, pluginv1.AsError(err).Message, "is not a regular file")
}

// TestChanging: a file that is written while it is read is a Retry.
func TestChanging(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "stream")
	require.NoError(t, os.WriteFile(file, make([]byte, 1<<20), 0o600))
	r := request(t, file, nil)
	err := sdk.NewSource(source(), runtime.GOOS).Fetch(t.Context(), r, func(c pluginv1.Chunk) error {
		if !c.Begin {
			return os.Truncate(file, 512<<10)
		}
		return nil
	})
	assert.Equal(t, pluginv1.CodeRetry, pluginv1.AsError(err).Code, "%v", err)
}

// TestNoReport: the provider keeps none, and does not offer it.
func TestNoReport(t *testing.T) {
	t.Parallel()
	s := sdk.NewSource(source(), runtime.GOOS)
	d, err := s.Describe(context.Background(), pluginv1.DescribeRequest{Target: target.Target{OS: runtime.GOOS}})
	require.NoError(t, err)
	assert.Empty(t, d.Capabilities)
	assert.Len(t, d.Kinds, 1)
	err = s.Report(context.Background(), pluginv1.ReportRequest{Document: request(t, "/x", nil).Document, Target: target.Target{OS: runtime.GOOS}})
	assert.Equal(t, pluginv1.CodeUnsupported, pluginv1.AsError(err).Code)
}

// FuzzPath: what is accepted is an absolute path, and no violation quotes the URI.
func FuzzPath(f *testing.F) {
	f.Add("file:///c4n4ry")
	f.Add("/c4n4ry")
	f.Add("file://c4n4ry/%2e%2e")
	f.Fuzz(func(t *testing.T, uri string) {
		all := validate(sdk.Location{URI: uri, Field: "spec.uri"})
		if len(all) > 0 {
			require.NotContains(t, fmt.Sprint(all), "c4n4ry")
			return
		}
		path, err := pathOf(uri)
		require.NoError(t, err)
		require.True(t, filepath.IsAbs(path))
	})
}
