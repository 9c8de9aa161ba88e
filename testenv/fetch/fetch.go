// Package fetch fills in the heads of the scripts in installer/fetch, as the user data of a machine does. Its tests run the
// shell script under the shells and tools of the systems that have it, against servers that misbehave.
package fetch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The scripts, below the root of the checkout.
const (
	Shell      = "installer/fetch/machineadm-fetch.sh"
	PowerShell = "installer/fetch/machineadm-fetch.ps1"
)

// Head has the values of the variables at the head of a script. An empty field leaves the script's own value.
type Head struct {
	Version string
	URLs    []string // directories of the release
	AMD64   string   // SHA-256 in hex
	ARM64   string   // likewise; Shell alone has it
	To      string   // directory
	Waits   string   // as the script writes them
	Limit   string   // seconds for a download
}

// Script returns a script of the checkout at root with its head filled in.
func Script(root, name string, h Head) (string, error) {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", err
	}
	format, urls := "%s='%s'", strings.Join(h.URLs, " ")
	if name == PowerShell {
		format, urls = "$%s = '%s'", strings.Join(h.URLs, "', '")
	}
	text := string(data)
	for _, v := range [][2]string{
		{"version", h.Version}, {"urls", urls}, {"amd64", h.AMD64}, {"arm64", h.ARM64}, {"to", h.To}, {"waits", h.Waits}, {"limit", h.Limit},
	} {
		line := regexp.MustCompile(`(?m)^\$?` + v[0] + ` ?=.*$`).FindStringIndex(text)
		switch {
		case v[1] == "":
		case line == nil:
			return "", fmt.Errorf("%s has no variable %s", name, v[0])
		default:
			text = text[:line[0]] + fmt.Sprintf(format, v[0], v[1]) + text[line[1]:]
		}
	}
	return text, nil
}

// File returns the name of the program in the directory of a release.
func File(version, goos, goarch string) string {
	name := "machineadm-" + version + "-" + goos + "-" + goarch
	if goos == "windows" {
		name += ".msi"
	}
	return name
}
