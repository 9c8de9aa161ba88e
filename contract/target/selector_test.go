package target_test

import (
	"testing"

	"github.com/machineadm/machineadm/contract/target"
)

func TestSelectorMatches(t *testing.T) {
	t.Parallel()
	ubuntu := target.Target{OS: "linux", Architecture: "arm64", Distribution: "ubuntu", Like: []string{"debian"}}
	windows := target.Target{OS: "windows", Architecture: "amd64", Distribution: "windows"}
	list := func(s ...string) []string { return s }
	for name, test := range map[string]struct {
		selector        target.Selector
		ubuntu, windows bool
	}{
		"empty":                       {target.Selector{}, true, true},
		"os":                          {target.Selector{OS: list("linux")}, true, false},
		"several":                     {target.Selector{OS: list("windows", "linux")}, true, true},
		"architecture":                {target.Selector{Architectures: list("amd64")}, false, true},
		"distribution by ID":          {target.Selector{Distributions: list("fedora", "ubuntu")}, true, false},
		"distribution by ID_LIKE":     {target.Selector{Distributions: list("debian")}, true, false},
		"windows is a distribution":   {target.Selector{Distributions: list("windows")}, false, true},
		"all lists must match":        {target.Selector{OS: list("linux"), Distributions: list("debian"), Architectures: list("amd64")}, false, false},
		"letters are compared as is":  {target.Selector{OS: list("Linux")}, false, false},
		"an empty word is no machine": {target.Selector{Distributions: list("")}, false, false},
	} {
		if got := test.selector.Matches(ubuntu); got != test.ubuntu {
			t.Errorf("%s: ubuntu: %v", name, got)
		}
		if got := test.selector.Matches(windows); got != test.windows {
			t.Errorf("%s: windows: %v", name, got)
		}
	}
}
