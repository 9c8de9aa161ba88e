package target

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/rooted"
)

// maxOSRelease bounds the os-release file, which has about 1 KiB.
const maxOSRelease = 64 << 10

func detect(root string) (Target, error) {
	if root == "" {
		root = "/"
	}
	if root = filepath.Clean(root); root == "/" {
		return detectLive()
	}
	if info, err := os.Stat(root); err != nil {
		return Target{}, fmt.Errorf("image root: %w", err)
	} else if !info.IsDir() {
		return Target{}, fmt.Errorf("image root %s is not a directory", root)
	}
	t, err := fromOSRelease(root)
	if err != nil {
		return Target{}, err
	}
	t.Architecture, t.Init = imageArchitecture(root), imageInit(root)
	return t, nil
}

func detectLive() (Target, error) {
	t, err := fromOSRelease("/")
	if err != nil {
		return Target{}, err
	}
	t.Architecture, t.Init = runtime.GOARCH, liveInit("/")
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return Target{}, fmt.Errorf("read the release of the kernel and the host name: %w", err)
	}
	t.Kernel = text(unix.ByteSliceToString(name.Release[:]))
	t.Hostname = text(unix.ByteSliceToString(name.Nodename[:]))
	return t, nil
}

// fromOSRelease reads os-release(5). The administrator's /etc/os-release precedes the vendor's /usr/lib/os-release.
func fromOSRelease(root string) (Target, error) {
	values := map[string]string{}
	for _, name := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		data, err := readInside(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Target{}, err
		}
		values, err = assignments(string(data), "ID", "ID_LIKE", "VERSION_ID", "PRETTY_NAME", "NAME")
		if err != nil {
			return Target{}, fmt.Errorf("%s: %w", filepath.Join(root, name), err)
		}
		break
	}
	t := Target{
		OS:           "linux",
		Distribution: strings.ToLower(values["ID"]),
		Like:         strings.Fields(strings.ToLower(values["ID_LIKE"])),
		Version:      strings.ToLower(values["VERSION_ID"]),
		Name:         values["PRETTY_NAME"],
	}
	if t.Distribution == "" {
		t.Distribution = "linux"
	}
	if t.Name == "" {
		t.Name = values["NAME"]
	}
	if t.Name == "" {
		t.Name = "Linux"
	}
	return t, nil
}

// readInside reads a regular file below root. Links are resolved inside root, so that an image never yields the os-release
// file of the machine that bakes it.
func readInside(root, name string) (data []byte, err error) {
	path := filepath.Join(root, name)
	file, err := rooted.Open(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err = io.ReadAll(io.LimitReader(file, maxOSRelease+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxOSRelease {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxOSRelease)
	}
	return data, nil
}

func text(s string) string {
	return strings.ToValidUTF8(s, "\ufffd")
}
