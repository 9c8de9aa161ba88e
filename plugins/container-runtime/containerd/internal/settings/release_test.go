package settings

import (
	"slices"
	"strings"
	"testing"
)

func TestParseRelease(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Release{
		"containerd github.com/containerd/containerd v1.7.24 88bf19b2105c8b17560993bee28a01ddc2f97182": {1, 7, 24},
		"containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3\n":                {1, 6, 20},
		"containerd github.com/containerd/containerd/v2 v2.3.7 ":                                       {2, 3, 7},
		"1.6.20~ds1": {1, 6, 20}, "1.7.24~ds1-6+b4": {1, 7, 24}, "v2.3.7": {2, 3, 7}, "2.0.0-rc.3": {2, 0, 0},
		"2.1": {2, 1, 0}, " 1.7.24 ": {1, 7, 24}, "1.7.27-1": {1, 7, 27}, "2.2.0+unknown": {2, 2, 0},
		"v2.1.4-0.20250101000000-abcdefabcdef": {2, 1, 4},
	} {
		if got, err := ParseRelease(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "2", "v", "containerd", "containerd x", "containerd a b c", "1.x", "1.2.3.4", "-1.2", "1.-2", "99999.1", "1.7.24 c4n4ry",
		"1:1.7.24", "２.1", "2.1\x00",
	} {
		if got, err := ParseRelease(text); err == nil || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestReleases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release                Release
		text                   string
		written, format        int
		supported, translating bool
	}{
		{Release{1, 5, 18}, "1.5.18", 2, 2, false, false},
		{Release{1, 6, 20}, "1.6.20", 2, 2, true, false},
		{Release{1, 7, 24}, "1.7.24", 2, 2, true, false},
		{Release{2, 0, 0}, "2.0.0", 3, 3, true, false},
		{Release{2, 2, 7}, "2.2.7", 3, 3, true, false},
		{Release{2, 3, 0}, "2.3.0", 3, 4, true, true},
		{Release{3, 0, 0}, "3.0.0", 3, 4, true, true},
	} {
		r := c.release
		if r.String() != c.text || r.Written() != c.written || r.Format() != c.format || r.Supported() != c.supported ||
			r.TranslatesEachFile() != c.translating {
			t.Errorf("%s: writes %d, reads %d, supported %v, translates %v", r, r.Written(), r.Format(), r.Supported(), r.TranslatesEachFile())
		}
	}
	order := []Release{{2, 0, 0}, {1, 10, 0}, {1, 9, 30}, {1, 9, 4}, {3, 0, 0}}
	slices.SortFunc(order, Release.compare)
	if !slices.Equal(order, []Release{{1, 9, 4}, {1, 9, 30}, {1, 10, 0}, {2, 0, 0}, {3, 0, 0}}) {
		t.Errorf("the order is %v", order)
	}
}
