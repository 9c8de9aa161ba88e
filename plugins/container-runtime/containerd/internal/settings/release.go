package settings

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// release is a release of containerd. What comes before it (2.0.0-rc.3) counts as it: the configuration is the same.
type Release struct{ Major, Minor, Patch int }

// parseRelease reads a version as `containerd --version`, a package, a build or a document tells it:
//
//	containerd github.com/containerd/containerd v1.7.24 88bf19b2105c
//	1.6.20~ds1-1+deb12u3
//	v2.3.7
//	2.1
//
// Its errors do not quote what they read.
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
		if digits != "" {
			parts[i], _ = strconv.Atoi(digits) // at most four digits
		}
	}
	return Release{parts[0], parts[1], parts[2]}, nil
}

// String is the release without the v, as in 1.7.24.
func (r Release) String() string { return fmt.Sprintf("%d.%d.%d", r.Major, r.Minor, r.Patch) }

func (r Release) compare(other Release) int {
	return cmp.Or(cmp.Compare(r.Major, other.Major), cmp.Compare(r.Minor, other.Minor), cmp.Compare(r.Patch, other.Patch))
}

// since says whether the release is of this minor version or a later one.
func (r Release) Since(major, minor int) bool { return r.compare(Release{major, minor, 0}) >= 0 }

// supported says whether this plugin configures it: 1.6 and what came after.
func (r Release) Supported() bool { return r.Since(1, 6) }

// written is the version of the configuration that this plugin writes: 2 for containerd 1.x, else 3, which every 2.x reads.
func (r Release) written() int {
	if r.Major < 2 {
		return 2
	}
	return 3
}

// format is the highest version of the configuration that the release reads, in which it also prints its dump.
func (r Release) Format() int {
	switch {
	case r.Major < 2:
		return 2
	case !r.Since(2, 3):
		return 3
	default:
		return 4
	}
}

// translatesEachFile says whether each file is brought to the newest version by itself. Until 2.2 all of them are, or
// none, by the version of the last.
func (r Release) TranslatesEachFile() bool { return r.Since(2, 3) }
