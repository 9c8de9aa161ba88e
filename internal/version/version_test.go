package version

import (
	"runtime/debug"
	"testing"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	main := func(v string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: v}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for name, c := range map[string]struct {
		stamp string
		info  *debug.BuildInfo
		want  string
	}{
		"the stamp wins":            {"v1.2.3", main("v9.9.9", commit), "v1.2.3"},
		"go install":                {"", main("v1.4.0"), "v1.4.0"},
		"go build in a checkout":    {"", main("(devel)", commit), "devel+0123456789ab"},
		"go build, changed":         {"", main("", commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"}), "devel+0123456789ab.dirty"},
		"an unchanged tree":         {"", main("", commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), "devel+0123456789ab"},
		"a short revision is whole": {"", main("", debug.BuildSetting{Key: "vcs.revision", Value: "42"}), "devel+42"},
		"nothing is known":          {"", main(""), "devel"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := choose(c.stamp, c.info); got != c.want {
				t.Errorf("choose() = %q, want %q", got, c.want)
			}
		})
	}
}

func TestStringIsNeverEmpty(t *testing.T) {
	t.Parallel()
	if String() == "" {
		t.Error("String() is empty")
	}
}
