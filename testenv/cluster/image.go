package cluster

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// image is an OCI image of one layer with one statically linked program, under the name that kubeadm has for it.
type image struct {
	name    string // as example.test/etcd:3.7.0-0
	program string // a file of this machine
	path    string // of the program, in the image
}

// descriptor refers to a blob, as the image specification has it.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// archive writes images in the layout that ctr images import reads. Each program is read twice, because the digest of its
// layer comes before the layer.
func archive(to io.Writer, images []image) error {
	w, index := tar.NewWriter(to), []descriptor{}
	for _, i := range images {
		manifest, err := i.write(w)
		if err != nil {
			return fmt.Errorf("image %s: %w", i.name, err)
		}
		index = append(index, manifest)
	}
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": index})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": text} {
		if err := entry(w, name, int64(len(data)), strings.NewReader(string(data))); err != nil {
			return err
		}
	}
	return w.Close()
}

func (i image) write(w *tar.Writer) (descriptor, error) {
	layer, err := i.digested()
	if err != nil {
		return descriptor{}, err
	}
	if err := w.WriteHeader(&tar.Header{Name: blob(layer), Mode: 0o644, Size: layer.Size}); err != nil {
		return descriptor{}, err
	}
	if err := i.layer(w); err != nil {
		return descriptor{}, err
	}
	config, err := document(w, "application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []string{i.path}, "Env": []string{"PATH=/usr/local/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return descriptor{}, err
	}
	const mediaType = "application/vnd.oci.image.manifest.v1+json"
	manifest, err := document(w, mediaType, map[string]any{
		"schemaVersion": 2, "mediaType": mediaType, "config": config, "layers": []descriptor{layer},
	})
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.name}
	return manifest, err
}

// digested describes the layer.
func (i image) digested() (descriptor, error) {
	sum, size := sha256.New(), counter(0)
	err := i.layer(io.MultiWriter(sum, &size))
	return descriptor{
		MediaType: "application/vnd.oci.image.layer.v1.tar", Digest: fmt.Sprintf("sha256:%x", sum.Sum(nil)), Size: int64(size),
	}, err
}

// layer writes the layer, the same bytes each time.
func (i image) layer(to io.Writer) error {
	f, err := os.Open(i.program)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	st, err := f.Stat()
	if err != nil {
		return err
	}
	w := tar.NewWriter(to)
	for _, dir := range []string{"etc/", "tmp/", "usr/", "usr/local/", "usr/local/bin/"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}); err != nil {
			return err
		}
	}
	if err := entry(w, strings.TrimPrefix(i.path, "/"), st.Size(), f); err != nil {
		return err
	}
	return w.Close()
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func document(w *tar.Writer, mediaType string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	d := descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(text)), Size: int64(len(text))}
	return d, entry(w, blob(d), d.Size, strings.NewReader(string(text)))
}

func blob(d descriptor) string { return strings.Replace("blobs/"+d.Digest, ":", "/", 1) }

func entry(w *tar.Writer, name string, size int64, content io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}
