// Package settings turns a ContainerRuntime document into settings of containerd's configuration. It is pure: its input
// is the document, the operating system and the release.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Release is a release of containerd. A pre-release (2.0.0-rc.3) counts as the release: its configuration is the same.
type Release struct{ Major, Minor, Patch int }

// ParseRelease reads a version as `containerd --version`, a package, a build or a document writes it:
//
//	containerd github.com/containerd/containerd v1.7.24 88bf19b2105c
//	1.6.20~ds1-1+deb12u3
//	v2.3.7
//	2.1
//
// Its errors do not quote the text.
func ParseRelease(text string) (Release, error) {
	if words := strings.Fields(text); len(words) > 2 && words[0] == "containerd" {
		text = words[2]
	}
	found := regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[-+~][0-9A-Za-z.+~:-]*)?$`).
		FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return Release{}, errors.New("is not a version of containerd")
	}
	var parts [3]int
	for i, digits := range found[1:] {
		parts[i], _ = strconv.Atoi(digits) // at most four digits; an empty part is 0
	}
	return Release{parts[0], parts[1], parts[2]}, nil
}

// String is the release without the v, as in 1.7.24.
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r.Major, r.Minor, r.Patch) }

func (r Release) compare(other Release) int {
	return cmp.Or(cmp.Compare(r.Major, other.Major), cmp.Compare(r.Minor, other.Minor), cmp.Compare(r.Patch, other.Patch))
}

// Since reports whether the release belongs to this minor version or a later one.
func (r Release) Since(major, minor int) bool { return r.compare(Release{major, minor, 0}) >= 0 }

// Supported reports whether this plugin configures the release.
func (r Release) Supported() bool { return r.Since(1, 6) }

// Written is the version of the configuration that this plugin writes: 2 for containerd 1.x, else 3, which every 2.x
// reads.
func (r Release) Written() int { return min(r.Major, 2) + 1 }

// Format is the highest version of the configuration that the release reads, and the version of its dump.
func (r Release) Format() int {
	if r.Since(2, 3) {
		return 4
	}
	return r.Written()
}

// TranslatesEachFile reports whether the release translates each file to the newest version by itself. Before 2.3 it
// translates all files or none, by the version of the last.
func (r Release) TranslatesEachFile() bool { return r.Since(2, 3) }
