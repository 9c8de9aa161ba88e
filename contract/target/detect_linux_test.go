package target_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/contract/target"
)

const flatcar = "NAME=\"Flatcar Container Linux\"\nID=Flatcar\nID_LIKE=\"coreos gentoo\"\nVERSION_ID=4152.2.0\nPRETTY_NAME='Flatcar 4152'\n"

var wantFlatcar = target.Target{
	OS: "linux", Architecture: runtime.GOARCH, Distribution: "flatcar",
	Like: []string{"coreos", "gentoo"}, Version: "4152.2.0", Name: "Flatcar 4152",
}

// image writes files below a new root: contents by path, `-> target` for a link.
func image(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if link, ok := strings.CutPrefix(content, "-> "); ok {
			err = os.Symlink(link, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestDetectImage(t *testing.T) {
	t.Parallel()
	bare := target.Target{OS: "linux", Architecture: runtime.GOARCH, Distribution: "linux", Like: []string{}, Name: "Linux"}
	named := bare
	named.Name = "Some Linux"
	for name, test := range map[string]struct {
		files map[string]string
		want  target.Target
		err   string
	}{
		"a file":                   {files: map[string]string{"etc/os-release": flatcar}, want: wantFlatcar},
		"the vendor's alone":       {files: map[string]string{"usr/lib/os-release": flatcar}, want: wantFlatcar},
		"the administrator wins":   {files: map[string]string{"etc/os-release": flatcar, "usr/lib/os-release": "ID=other"}, want: wantFlatcar},
		"a relative link":          {files: map[string]string{"etc/os-release": "-> ../usr/lib/os-release", "usr/lib/os-release": flatcar}, want: wantFlatcar},
		"an absolute link":         {files: map[string]string{"etc/os-release": "-> /usr/lib/os-release", "usr/lib/os-release": flatcar}, want: wantFlatcar},
		"a link above the root":    {files: map[string]string{"etc/os-release": "-> ../../../../../../../x", "x": flatcar}, want: wantFlatcar},
		"a linked directory":       {files: map[string]string{"etc": "-> /system/etc", "system/etc/os-release": flatcar}, want: wantFlatcar},
		"a dangling link":          {files: map[string]string{"etc/os-release": "-> /nowhere", "usr/lib/os-release": flatcar}, want: wantFlatcar},
		"none":                     {want: bare},
		"an empty one":             {files: map[string]string{"etc/os-release": ""}, want: bare},
		"NAME for PRETTY_NAME":     {files: map[string]string{"etc/os-release": "NAME='Some Linux'"}, want: named},
		"a directory in its place": {files: map[string]string{"etc/os-release/x": ""}, err: "is not a regular file"},
		"a broken value":           {files: map[string]string{"etc/os-release": "\nID=\"x"}, err: "etc/os-release: line 2: ID: the quote is not closed"},
		"a huge one":               {files: map[string]string{"etc/os-release": strings.Repeat("#\n", 40<<10)}, err: "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := target.Detect(image(t, test.files))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			test.want.Init = target.InitNone
			if !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestDetectImageWithFIFO(t *testing.T) {
	t.Parallel()
	root := image(t, map[string]string{"etc/x": ""})
	if err := syscall.Mkfifo(filepath.Join(root, "etc/os-release"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Detect(root); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Fatalf("error %v", err)
	}
}

func TestDetectImageRootMissing(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := target.Detect(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("error %v", err)
	}
	file := filepath.Join(image(t, map[string]string{"file": ""}), "file")
	if _, err := target.Detect(file); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("error %v", err)
	}
}

func TestDetectImageArchitecture(t *testing.T) {
	t.Parallel()
	program := func(class, data byte, machine uint16) string {
		header := make([]byte, 64)
		copy(header, "\x7fELF")
		header[4], header[5] = class, data
		if data == 1 {
			binary.LittleEndian.PutUint16(header[18:], machine)
		} else {
			binary.BigEndian.PutUint16(header[18:], machine)
		}
		return string(header)
	}
	for _, test := range []struct{ want, content string }{
		{"amd64", program(2, 1, 62)},
		{"arm64", program(2, 1, 183)},
		{"386", program(1, 1, 3)},
		{"arm", program(1, 1, 40)},
		{"ppc64le", program(2, 1, 21)},
		{"ppc64", program(2, 2, 21)},
		{"s390x", program(2, 2, 22)},
		{"riscv64", program(2, 1, 243)},
		{"loong64", program(2, 1, 258)},
		{runtime.GOARCH, program(2, 1, 999)},
		{runtime.GOARCH, "#!/bin/sh\n# long enough for a header"},
	} {
		root := image(t, map[string]string{"usr/bin/env": test.content, "bin": "-> /usr/bin"})
		got, err := target.Detect(root)
		if err != nil {
			t.Fatal(err)
		}
		if got.Architecture != test.want {
			t.Errorf("got %s, want %s", got.Architecture, test.want)
		}
	}
	root := image(t, map[string]string{"usr/lib/systemd/systemd": program(2, 1, 183), "bin/sh": program(2, 1, 62)})
	if got, err := target.Detect(root); err != nil || got.Architecture != "arm64" {
		t.Errorf("%+v %v: the first program decides", got, err)
	}
}

func TestDetectLive(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "/", "//", "/usr/.."} {
		got, err := target.Detect(root)
		if err != nil {
			t.Fatal(err)
		}
		uname, err := exec.Command("uname", "-r").Output()
		if err != nil {
			t.Fatal(err)
		}
		hostname, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
		if got.OS != "linux" || got.Architecture != runtime.GOARCH || got.Distribution == "" || got.Name == "" ||
			got.Kernel != strings.TrimSpace(string(uname)) || got.Hostname != hostname {
			t.Errorf("%q: %+v", root, got)
		}
		if want, ok := shellID(); ok && got.Distribution != want {
			t.Errorf("%q: distribution %s, the shell reads %s", root, got.Distribution, want)
		}
	}
}

// shellID asks the reader that os-release(5) was made for.
func shellID() (string, bool) {
	out, err := exec.Command("sh", "-c", ". /etc/os-release && printf %s \"$ID\"").Output()
	return string(out), err == nil && len(out) > 0
}
