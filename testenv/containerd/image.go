package containerd

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
)

// blob is content that is addressed by its digest.
type blob struct {
	data   []byte
	digest string // sha256:...
}

func newBlob(data []byte) blob {
	sum := sha256.Sum256(data)
	return blob{data: data, digest: "sha256:" + hex.EncodeToString(sum[:])}
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

func (b blob) describe(mediaType string) descriptor {
	return descriptor{MediaType: mediaType, Digest: b.digest, Size: len(b.data)}
}

// image is one of one layer with one file, which holds the given text: two images of other text share nothing.
func image(text string) (manifest, config, layer blob, err error) {
	var archive, packed bytes.Buffer
	if err := writeTar(&archive, map[string][]byte{"text": []byte(text)}); err != nil {
		return blob{}, blob{}, blob{}, err
	}
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(archive.Bytes()); err != nil {
		return blob{}, blob{}, blob{}, err
	}
	if err := zip.Close(); err != nil {
		return blob{}, blob{}, blob{}, err
	}
	layer = newBlob(packed.Bytes())
	configText, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Cmd": []string{"/text"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{newBlob(archive.Bytes()).digest}},
	})
	if err != nil {
		return blob{}, blob{}, blob{}, err
	}
	config = newBlob(configText)
	manifestText, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": config.describe(configType), "layers": []descriptor{layer.describe(layerType)},
	})
	return newBlob(manifestText), config, layer, err
}

// stored is how the registry keeps an image in files, by path below the root of its storage.
func stored(name, tag string, manifest, config, layer blob) map[string][]byte {
	const root = "docker/registry/v2"
	repository := path.Join(root, "repositories", name)
	at := func(b blob) string { return path.Join("sha256", b.digest[len("sha256:"):]) }
	files := map[string][]byte{}
	for _, b := range []blob{manifest, config, layer} {
		hash := b.digest[len("sha256:"):]
		files[path.Join(root, "blobs/sha256", hash[:2], hash, "data")] = b.data
	}
	for _, b := range []blob{config, layer} {
		files[path.Join(repository, "_layers", at(b), "link")] = []byte(b.digest)
	}
	for _, link := range []string{"revisions/" + at(manifest), "tags/" + tag + "/current", "tags/" + tag + "/index/" + at(manifest)} {
		files[path.Join(repository, "_manifests", link, "link")] = []byte(manifest.digest)
	}
	return files
}

func writeTar(to *bytes.Buffer, files map[string][]byte) error {
	w := tar.NewWriter(to)
	for name, data := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return fmt.Errorf("archive %s: %w", name, err)
		}
		if _, err := w.Write(data); err != nil {
			return fmt.Errorf("archive %s: %w", name, err)
		}
	}
	return w.Close()
}
