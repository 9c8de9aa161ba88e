package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/host/catalog"
)

func TestList(t *testing.T) {
	t.Parallel()
	base := install(t,
		"a/machineadm-timesync-plugin-chronyd", "a/README", "a/machineadm", "a/machineadm-timesync-plugin-chronyd.bak",
		"b/machineadm-timesync-plugin-chronyd", "b/machineadm-timesync-plugin-ntpd", "b/"+sysctl,
		"c/"+sysctl, "c/machineadm-remote-configuration-provider-s3",
		"path/machineadm-plugin-encryption-provider-file", "path/ls", "file",
	)
	chmod(t, filepath.Join(base, "b/machineadm-timesync-plugin-ntpd"), 0o777) // listed all the same
	c := newCatalog(t, catalog.Options{
		First: below(base, "a", "file"), Fixed: below(base, "b", "c", "missing"),
		Path: filepath.Join(base, "path"), PluginsOnPath: true,
	})
	plugins, problems := c.List()
	if len(plugins) != 1 || plugins[0].Path != filepath.Join(base, "a/machineadm-timesync-plugin-chronyd") {
		t.Errorf("a directory that cannot be read hides what is behind it: %v", plugins)
	}
	if len(problems) == 0 || !errors.Is(problems[0], syscall.ENOTDIR) {
		t.Errorf("%v", problems)
	}

	c = newCatalog(t, catalog.Options{
		First: below(base, "a"), Fixed: below(base, "b", "c", "missing"),
		Path: filepath.Join(base, "path"), PluginsOnPath: true,
	})
	plugins, problems = c.List()
	want := []catalog.Plugin{
		{Binary: "machineadm-plugin-encryption-provider-file", Path: filepath.Join(base, "path/machineadm-plugin-encryption-provider-file")},
		{Binary: "machineadm-remote-configuration-provider-s3", Path: filepath.Join(base, "c/machineadm-remote-configuration-provider-s3")},
		{Binary: "machineadm-timesync-plugin-chronyd", Path: filepath.Join(base, "a/machineadm-timesync-plugin-chronyd")},
		{Binary: "machineadm-timesync-plugin-ntpd", Path: filepath.Join(base, "b/machineadm-timesync-plugin-ntpd")},
	}
	if !slices.Equal(plugins, want) {
		t.Errorf("%v", plugins)
	}
	var twice *catalog.DuplicateError
	if len(problems) != 1 || !errors.As(problems[0], &twice) || len(twice.Paths) != 2 {
		t.Errorf("%v", problems)
	}
}

func TestByType(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	base := install(t,
		"a/machineadm-timesync-plugin-systemd", "a/machineadm-timesync-plugin-chronyd", "a/machineadm-timesync-more-plugin-x",
		"a/machineadm-remote-configuration-provider-s3", "a/machineadm-plugin-encryption-provider-file",
		"a/machineadm-timesync-plugin-"+long+"-plugin-x", // of another kind: too long for a provider of this one
		"a/"+sysctl, "b/"+sysctl,
	)
	c := newCatalog(t, catalog.Options{Fixed: below(base, "a", "b")})
	for kind, want := range map[string][]string{
		"Timesync":        {"machineadm-timesync-plugin-chronyd", "machineadm-timesync-plugin-systemd"},
		"TimesyncMore":    {"machineadm-timesync-more-plugin-x"},
		"RemoteConfig":    {"machineadm-remote-configuration-provider-s3"},
		"EncryptedConfig": {"machineadm-plugin-encryption-provider-file"},
		"DomainJoin":      nil,
		"not a kind":      nil,
		"":                nil,
	} {
		plugins, err := c.ByType(kind)
		var missing *catalog.NotFoundError
		if errors.As(err, &missing) != (want == nil) {
			t.Errorf("%s: %v", kind, err)
		}
		var got []string
		for _, p := range plugins {
			got = append(got, p.Binary)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	var twice *catalog.DuplicateError
	if plugins, err := c.ByType("Sysctl"); !errors.As(err, &twice) {
		t.Errorf("the doubled one is chosen, or is missed: %v %v", plugins, err)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "abc")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(2, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 { // FIPS 180-4's own example
		got, err := catalog.Digest(file)
		if err != nil || got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
			t.Errorf("%s %v", got, err)
		}
	}
	if at, err := file.Seek(0, 1); err != nil || at != 2 {
		t.Errorf("the offset is %d, %v", at, err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := catalog.Digest(file); err == nil {
		t.Errorf("of a closed file: %s", got)
	}
}
