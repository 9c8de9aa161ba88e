package install

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
)

// FuzzUnpack requires that an archive leaves nothing but listed files, and after success all of them.
func FuzzUnpack(f *testing.F) {
	listed := map[string]string{"bin/machineadm": "program", "plugins/machineadm-x-plugin-y": "plugin", "share/man/m.8": ""}
	var contents []manifest.Entry
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	require.NoError(f, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: directory}))
	for name, text := range listed {
		sum, err := digest(bytes.NewReader([]byte(text)))
		require.NoError(f, err)
		contents = append(contents, manifest.Entry{Path: name, Size: int64(len(text)), SHA256: sum})
		require.NoError(f, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode(name)), Size: int64(len(text))}))
		_, err = w.Write([]byte(text))
		require.NoError(f, err)
	}
	require.NoError(f, w.Close())
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<14))
	require.NoError(f, err)
	f.Add(archive.Bytes(), false)
	f.Add(encoder.EncodeAll(archive.Bytes(), nil), true)
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		if !compressed {
			data = encoder.EncodeAll(data, nil)
		}
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(dir+"/in", 0o700))
		root, err := os.OpenRoot(dir + "/in")
		require.NoError(t, err)
		defer func() { require.NoError(t, root.Close()) }()
		failed := unpack(bytes.NewReader(data), root, contents, contents)
		found := 0
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(dir+"/in", path)
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			info, err := d.Info()
			require.NoError(t, err)
			want, ok := listed[name]
			switch {
			case !ok || !info.Mode().IsRegular():
				t.Errorf("an unlisted file: %s", path)
			case info.Mode() == mode(name) && string(text) != want:
				t.Errorf("%s is in place with %q", name, text)
			}
			found++
			return nil
		}))
		if failed == nil && found != len(listed) {
			t.Errorf("%d files, want %d", found, len(listed))
		}
	})
}
