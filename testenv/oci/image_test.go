package oci

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func program(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("x"), 100_000), 0o600))
	return file
}

// unpack returns the files of an archive and their names in its order, and checks what the names of blobs say.
func unpack(t *testing.T, packed []byte) (map[string][]byte, []string) {
	t.Helper()
	files, names := map[string][]byte{}, []string{}
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, names
		}
		require.NoError(t, err)
		require.Zero(t, h.ModTime.Unix())
		require.Equal(t, "0 0", fmt.Sprint(h.Uid, h.Gid, h.Uname, h.Gname))
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		if h.Typeflag == tar.TypeReg && filepath.Dir(h.Name) == "blobs/sha256" {
			require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(data)), filepath.Base(h.Name))
		}
		files[h.Name], names = data, append(names, h.Name)
	}
}

func TestArchiveIsAddressedByContent(t *testing.T) {
	t.Parallel()
	file := program(t)
	images := []Image{
		{Name: "example.test/one:1", Programs: map[string]string{"amd64": file}, Path: "/one"},
		{Name: "example.test/two:2", Programs: map[string]string{"amd64": file}, Path: "/usr/local/bin/two"},
	}
	var packed, again bytes.Buffer
	require.NoError(t, Write(&packed, images))
	require.NoError(t, os.Chtimes(file, time.Unix(1, 0), time.Unix(1, 0)))
	require.NoError(t, Write(&again, images))
	assert.Equal(t, packed.Bytes(), again.Bytes(), "the same bytes each time")
	files, names := unpack(t, packed.Bytes())
	assert.True(t, slices.IsSorted(names), "%q", names)
	assert.Len(t, files, 8, "a layer, a configuration and a manifest of each, and two files about all")
	for _, i := range images {
		assert.Contains(t, string(files["index.json"]), `"io.containerd.image.name":"`+i.Name+`"`)
	}
}

// TestPlatforms follows the references of an image for two architectures, as a container engine does.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	file := program(t)
	var packed bytes.Buffer
	require.NoError(t, Write(&packed, []Image{{
		Name: "example.test/manager:1", Programs: map[string]string{"arm64": file, "amd64": file}, Path: "/manager", User: "65532",
		More: map[string]map[string]string{"arm64": {"/usr/libexec/plugin": file}, "amd64": {"/usr/libexec/plugin": file}},
	}}))
	files, _ := unpack(t, packed.Bytes())
	type document struct {
		Manifests, Layers []descriptor
		Config            json.RawMessage
	}
	read := func(name string) (d document) {
		require.NoError(t, json.Unmarshal(files[name], &d), name)
		return d
	}
	index := read("index.json").Manifests
	require.Len(t, index, 1)
	platforms := ""
	for _, m := range read(index[0].blob()).Manifests {
		platforms += m.Platform["os"] + "/" + m.Platform["architecture"] + " "
		manifest := read(m.blob())
		var config descriptor
		require.NoError(t, json.Unmarshal(manifest.Config, &config))
		require.JSONEq(t, `{"Entrypoint":["/manager"],"Env":["PATH=/"],"User":"65532"}`, string(read(config.blob()).Config))
		layer, names := unpack(t, files[manifest.Layers[0].blob()])
		require.Equal(t, []string{"etc/", "tmp/", "usr/", "usr/libexec/", "manager", "usr/libexec/plugin"}, names)
		require.Len(t, layer["manager"], 100_000)
	}
	require.Equal(t, "linux/amd64 linux/arm64 ", platforms)
	require.Error(t, Write(io.Discard, []Image{{Programs: map[string]string{"amd64": file + "x"}}}))
}
