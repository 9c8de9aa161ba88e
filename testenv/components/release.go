package components

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/oci"
	"github.com/machineadm/machineadm/testenv/tools"
)

// Provider and File are the names that clusterctl has for the provider and for its manifests.
const (
	Provider = "machineadm"
	File     = "bootstrap-components.yaml"
)

// Release is a version of the controller.
type Release struct {
	Version string // as v1.2.3
	Image   string // the repository of the image, with its registry
}

// Reference is the name of the image. A tag has no character for build metadata.
func (r Release) Reference() string { return r.Image + ":" + strings.ReplaceAll(r.Version, "+", "-") }

// Files renders the manifests, and returns them and the other files of the release by name. It reports its steps on log.
func (r Release) Files(ctx context.Context, log io.Writer) (map[string][]byte, error) {
	root, err := tools.Root(".")
	if err != nil {
		return nil, err
	}
	kustomize, err := tools.Path(ctx, log, ".", "kustomize")
	if err != nil {
		return nil, err
	}
	if err := require.Record("tree", "host/controller/config"); err != nil {
		return nil, err
	}
	render := exec.CommandContext(ctx, kustomize, filepath.Join(root, "host/controller/config/default"))
	render.Stderr = log
	rendered, err := render.Output()
	if err != nil {
		return nil, fmt.Errorf("render the manifests: %w", err)
	}
	const placeholder = "image: controller:latest\n"
	if n := bytes.Count(rendered, []byte(placeholder)); n != 1 {
		return nil, fmt.Errorf("the manifests have %d images and not 1", n)
	}
	files := map[string][]byte{File: bytes.Replace(rendered, []byte(placeholder), []byte("image: "+r.Reference()+"\n"), 1)}
	sources, err := filepath.Glob(filepath.Join(root, "host/controller/release/*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		if files[filepath.Base(source)], err = os.ReadFile(source); err != nil {
			return nil, err
		}
	}
	if !r.hasSeries(files["metadata.yaml"]) {
		return nil, fmt.Errorf("version %q has no series in host/controller/release/metadata.yaml: set VERSION=v1.2.3, or add one", r.Version)
	}
	return files, nil
}

// hasSeries says whether clusterctl finds the contract of the version.
func (r Release) hasSeries(metadata []byte) bool {
	var major, minor, patch int
	if n, err := fmt.Sscanf(r.Version, "v%d.%d.%d", &major, &minor, &patch); n != 3 || err != nil {
		return false
	}
	return bytes.Contains(metadata, fmt.Appendf(nil, "{major: %d, minor: %d,", major, minor))
}

// Write writes the release into a directory. The programs of the image are named by their architecture, and source plugins and key providers are beside them.
func (r Release) Write(ctx context.Context, log io.Writer, into string, programs map[string]string) error {
	files, err := r.Files(ctx, log)
	if err != nil {
		return err
	}
	at := filepath.Join(into, "bootstrap-"+Provider, r.Version)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(at, name), content, 0o644); err != nil { //nolint:gosec // for everyone
			return err
		}
	}
	return r.writeImage(filepath.Join(into, "manager-"+r.Version+".tar"), programs)
}

func (r Release) writeImage(to string, programs map[string]string) error {
	image := oci.Image{Name: r.Reference(), Path: "/manager", User: "65532", Programs: programs, More: map[string]map[string]string{}}
	for architecture, program := range programs {
		plugins, err := filepath.Glob(filepath.Join(filepath.Dir(program), "machineadm-*-provider-*"))
		if err != nil {
			return err
		}
		image.More[architecture] = map[string]string{}
		for _, plugin := range plugins {
			image.More[architecture][path.Join("/usr/libexec/machineadm", filepath.Base(plugin))] = plugin
		}
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(oci.Write(f, []oci.Image{image}), f.Close())
}
