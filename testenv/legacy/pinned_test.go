package legacy

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pin is for the day on which another release is kept. Nothing else changes what was.
var pin = flag.Bool("pin", false, "write down what yesterday's plugin is")

// TestYesterdayIsUnchanged: installed releases do not change, and neither does the copy of it here, with the
// plugin.proto that `make lint` compares today's with.
func TestYesterdayIsUnchanged(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := filepath.WalkDir(before, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if name == filepath.Join(before, "go.mod") && strings.Contains(string(data), "machineadm/machineadm") {
			t.Errorf("%s names the checkout: then a change of that changes yesterday", name)
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(data), filepath.ToSlash(name))
		return err
	})
	require.NoError(t, err)
	const sums = "testdata/v1alpha1.sha256"
	if *pin {
		require.NoError(t, os.WriteFile(sums, []byte(out.String()), 0o600))
	}
	want, err := os.ReadFile(sums)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}
