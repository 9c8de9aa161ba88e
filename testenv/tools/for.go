package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// tiers are what the file may contain: the tiers of require, those without a tool of their own, and lint.
func tiers() []string {
	return []string{"lint", "test", string(require.Controller), string(require.System), string(require.Cluster), string(require.VM), "campaign"}
}

// OfTiers lists the tools that belong to one of the tiers, sorted. dir is any directory inside the checkout.
func OfTiers(dir string, wanted ...string) ([]string, error) {
	for _, tier := range wanted {
		if !slices.Contains(tiers(), tier) {
			return nil, fmt.Errorf("there is no tier %q: the tiers are %s", tier, strings.Join(tiers(), ", "))
		}
	}
	all, err := Names(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		tier, err := Tier(dir, name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(wanted, tier) {
			names = append(names, name)
		}
	}
	return names, nil
}

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
