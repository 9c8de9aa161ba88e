package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

// For returns the absolute path of the named tool for a test, and builds it first when the cache does not hold it. The test
// belongs to the tool's tier.
func For(t testing.TB, name string) string {
	t.Helper()
	tier, err := Tier(".", name)
	if err != nil {
		t.Fatal(err)
	}
	require.Tier(t, require.TierName(tier))
	path, err := Path(t.Context(), t.Output(), ".", name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// tierFile is in the folder of each tool and has the tier whose tests need it, or "lint" for a tool that no test needs.
const tierFile = "tier"

// Tier returns the tier of the named tool. dir is any directory inside the checkout.
func Tier(dir, name string) (string, error) {
	root, err := Root(dir)
	if err != nil {
		return "", err
	}
	set, _, _ := strings.Cut(name, "/")
	tier, err := os.ReadFile(filepath.Join(root, folder, set, tierFile))
	return strings.TrimSpace(string(tier)), err
}
