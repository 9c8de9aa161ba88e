package oci

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Image is an image of one layer with statically linked programs.
type Image struct {
	Name string // as example.test/etcd:3.7.0-0
	Path string // of the program, in the image
	User string // a number, or empty for root
	// Programs are files of this machine, by architecture.
	Programs map[string]string
	// More are further files of this machine, by architecture and by their path in the image.
	More map[string]map[string]string
}

// descriptor refers to a blob, as the image specification has it.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// layout are the files of an archive, by name. Their content is written when the names are known: sorted.
type layout map[string]file

type file struct {
	size  int64
	write func(io.Writer) error
}

// Write writes images in the layout that ctr images import and skopeo read. Each program is read twice, because the digest
// of its layer comes before the layer.
func Write(to io.Writer, images []Image) error {
	l, index := layout{}, []descriptor{}
	for _, i := range images {
		d, err := l.image(i)
		if err != nil {
			return fmt.Errorf("image %s: %w", i.Name, err)
		}
		index = append(index, d)
	}
	text, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": index})
	if err != nil {
		return err
	}
	l["index.json"], l["oci-layout"] = bytesOf(text), bytesOf([]byte(`{"imageLayoutVersion":"1.0.0"}`))
	w := tar.NewWriter(to)
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: l[name].size}); err != nil {
			return err
		}
		if err := l[name].write(w); err != nil {
			return err
		}
	}
	return w.Close()
}

// image adds an image: a manifest, or an index of those for several architectures.
func (l layout) image(i Image) (descriptor, error) {
	var manifests []descriptor
	for _, architecture := range slices.Sorted(maps.Keys(i.Programs)) {
		d, err := l.manifest(i, architecture)
		if err != nil {
			return descriptor{}, err
		}
		manifests = append(manifests, d)
	}
	d, err := manifests[0], error(nil)
	if len(manifests) > 1 {
		const mediaType = "application/vnd.oci.image.index.v1+json"
		d, err = l.document(mediaType, map[string]any{"schemaVersion": 2, "mediaType": mediaType, "manifests": manifests})
	}
	d.Annotations = map[string]string{"io.containerd.image.name": i.Name, "org.opencontainers.image.ref.name": i.Name}
	return d, err
}

func (l layout) manifest(i Image, architecture string) (descriptor, error) {
	sum, size := sha256.New(), counter(0)
	write := func(to io.Writer) error { return i.layer(to, architecture) }
	if err := write(io.MultiWriter(sum, &size)); err != nil {
		return descriptor{}, err
	}
	layer := descriptor{
		MediaType: "application/vnd.oci.image.layer.v1.tar", Digest: fmt.Sprintf("sha256:%x", sum.Sum(nil)), Size: int64(size),
	}
	l[layer.blob()] = file{layer.Size, write}
	platform := map[string]string{"architecture": architecture, "os": "linux"}
	config, err := l.document("application/vnd.oci.image.config.v1+json", map[string]any{
		"architecture": architecture, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{i.Path}, "Env": []string{"PATH=" + path.Dir(i.Path)}, "User": i.User},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return descriptor{}, err
	}
	const mediaType = "application/vnd.oci.image.manifest.v1+json"
	d, err := l.document(mediaType, map[string]any{
		"schemaVersion": 2, "mediaType": mediaType, "config": config, "layers": []descriptor{layer},
	})
	d.Platform = platform
	return d, err
}

// layer writes the layer, the same bytes each time: no time, and root as the owner of all.
func (i Image) layer(to io.Writer, architecture string) error {
	files := map[string]string{strings.TrimPrefix(i.Path, "/"): i.Programs[architecture]}
	for name, file := range i.More[architecture] {
		files[strings.TrimPrefix(name, "/")] = file
	}
	directories := map[string]struct{}{"etc": {}, "tmp": {}}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			directories[dir] = struct{}{}
		}
	}
	w := tar.NewWriter(to)
	for _, dir := range slices.Sorted(maps.Keys(directories)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := put(w, name, files[name]); err != nil {
			return err
		}
	}
	return w.Close()
}

func put(w *tar.Writer, name, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written to it
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func (l layout) document(mediaType string, content any) (descriptor, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return descriptor{}, err
	}
	d := descriptor{MediaType: mediaType, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(text)), Size: int64(len(text))}
	l[d.blob()] = bytesOf(text)
	return d, nil
}

func bytesOf(text []byte) file {
	return file{int64(len(text)), func(to io.Writer) error { _, err := to.Write(text); return err }}
}

func (d descriptor) blob() string { return strings.Replace("blobs/"+d.Digest, ":", "/", 1) }
