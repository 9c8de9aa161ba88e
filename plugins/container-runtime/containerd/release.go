package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// release is a release of containerd. What comes before it (2.0.0-rc.3) counts as it: the configuration is the same.
type release struct{ Major, Minor, Patch int }

// parseRelease reads a version as `containerd --version`, a package, a build or a document tells it:
//
//	containerd github.com/containerd/containerd v1.7.24 88bf19b2105c
//	1.6.20~ds1-1+deb12u3
//	v2.3.7
//	2.1
//
// Its errors do not quote what they read.
func parseRelease(text string) (release, error) {
	if words := strings.Fields(text); len(words) > 2 && words[0] == "containerd" {
		text = words[2]
	}
	found := regexp.MustCompile(`^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[-+~][0-9A-Za-z.+~:-]*)?$`).
		FindStringSubmatch(strings.TrimSpace(text))
	if found == nil {
		return release{}, errors.New("is not a version of containerd")
	}
	var parts [3]int
	for i, digits := range found[1:] {
		if digits != "" {
			parts[i], _ = strconv.Atoi(digits) // at most four digits
		}
	}
	return release{parts[0], parts[1], parts[2]}, nil
}

// String is the release without the v, as in 1.7.24.
func (r release) String() string { return fmt.Sprintf("%d.%d.%d", r.Major, r.Minor, r.Patch) }

func (r release) compare(other release) int {
	return cmp.Or(cmp.Compare(r.Major, other.Major), cmp.Compare(r.Minor, other.Minor), cmp.Compare(r.Patch, other.Patch))
}

// since says whether the release is of this minor version or a later one.
func (r release) since(major, minor int) bool { return r.compare(release{major, minor, 0}) >= 0 }

func (r release) major() int { return r.Major }

// minor is the first release of the same minor version.
func (r release) minor() release { return release{r.Major, r.Minor, 0} }

// supported says whether this plugin configures it: 1.6 and what came after.
func (r release) supported() bool { return r.since(1, 6) }

// written is the version of the configuration that this plugin writes: 2 for containerd 1.x, else 3, which every 2.x reads.
func (r release) written() int {
	if r.Major < 2 {
		return 2
	}
	return 3
}

// format is the highest version of the configuration that the release reads, in which it also prints its dump.
func (r release) format() int {
	switch {
	case r.Major < 2:
		return 2
	case !r.since(2, 3):
		return 3
	default:
		return 4
	}
}

// translatesEachFile says whether each file is brought to the newest version by itself. Until 2.2 all of them are, or
// none, by the version of the last.
func (r release) translatesEachFile() bool { return r.since(2, 3) }
