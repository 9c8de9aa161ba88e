package target

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

func detect(root string) (Target, error) {
	if root != "" && root != "/" && root != `\` {
		return Target{}, fmt.Errorf("an image root on Windows: %w", errors.ErrUnsupported)
	}
	// Not GetVersionEx, which depends on the program's manifest.
	v := windows.RtlGetVersion()
	version := fmt.Sprintf("%d.%d.%d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	hostname, err := os.Hostname()
	if err != nil {
		return Target{}, fmt.Errorf("read the host name: %w", err)
	}
	return Target{
		OS:           "windows",
		Architecture: runtime.GOARCH,
		Distribution: "windows",
		Version:      version,
		Name:         productName(version),
		Kernel:       version,
		Hostname:     strings.ToValidUTF8(hostname, "\ufffd"),
	}, nil
}

// productName returns the display name, with a fallback, because a run does not depend on it.
func productName(version string) (name string) {
	fallback := "Windows " + version
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Windows NT\CurrentVersion`, registry.QUERY_VALUE)
	if err != nil {
		return fallback
	}
	name, _, err = key.GetStringValue("ProductName")
	if closeErr := key.Close(); err != nil || closeErr != nil || name == "" {
		return fallback
	}
	return strings.ToValidUTF8(name, "\ufffd")
}
