package release

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/installer/manifest"
)

// sysext writes a system extension: programs, manual pages, schemas and completions as an image that systemd-sysext merges into
// /usr, for systems in which /usr cannot be written. It has no units, because systemd plans a boot before the image is merged,
// and so would not start them; the host writes its unit to /etc instead. Source: systemd-sysext(8), os-release(5).
func (r *Release) sysext(ctx context.Context, p Platform) ([]artifact, error) {
	files, err := r.extension(p)
	if err != nil {
		return nil, err
	}
	a := artifact{File: r.file(manifest.KindSysext, p, ""), files: installed(r.programs(p, roleCommand, rolePlugin))}
	a.Name = "machineadm-" + r.Version + "-" + p.Arch + ".raw"
	level := "19"
	if r.Quick {
		level = "1"
	}
	squash := exec.CommandContext(ctx, "mksquashfs", "-", filepath.Join(r.Out, a.Name), "-tar", "-noappend", "-quiet", "-no-progress", //nolint:gosec // paths of the release
		"-all-root", "-no-xattrs", "-root-mode", "0755", "-comp", "zstd", "-Xcompression-level", level,
		"-mkfs-time", r.seconds(), "-all-time", r.seconds(), "-reproducible", "-processors", "1")
	// mksquashfs refuses a time of the environment beside that of its arguments.
	squash.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SOURCE_DATE_EPOCH=") })
	return []artifact{a}, pipe(func(w io.Writer) error { return writeTar(w, files, r.Time) }, nil, squash)
}

func (r *Release) extension(p Platform) ([]File, error) {
	share, err := r.shared()
	if err != nil {
		return nil, err
	}
	// Names of systemd, which differ from Go's.
	arch := map[string]string{"amd64": "x86-64"}[p.Arch]
	if arch == "" {
		arch = p.Arch
	}
	release := File{
		Path: "usr/lib/extension-release.d/extension-release.machineadm", Mode: 0o644,
		Data: []byte("ID=_any\nARCHITECTURE=" + arch + "\n"),
	}
	return sorted(installed(r.programs(p, roleCommand, rolePlugin)), installed(share), []File{release}), nil
}
