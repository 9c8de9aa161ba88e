package guides

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const clusterAPI = "docs/cluster-api.md"

// TestClusterAPIShowsItsExamples: each block with the name of a file is a part of that file, which testenv/crd applies.
func TestClusterAPIShowsItsExamples(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, b := range blocks(read(t, clusterAPI)) {
		if b.file != "" {
			shown[b.file] = true
			assert.Contains(t, read(t, b.file), b.text, b.file)
		}
	}
	assert.Greater(t, len(shown), 4)
}

// TestFlagsOfTheManager: each flag that the page names is one of the manager.
func TestFlagsOfTheManager(t *testing.T) {
	t.Parallel()
	// Cluster API's managers have the same flags for diagnostics; TestDeployment of testenv/clusterctl has their names.
	source := read(t, "host/cmd/manager/flags.go") + `"diagnostics-address" "insecure-diagnostics"`
	flags := regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(read(t, clusterAPI), -1)
	require.NotEmpty(t, flags)
	for _, flag := range flags {
		assert.Contains(t, source, `"`+flag[1]+`"`)
	}
}

// TestTokenLife: the page has the values of the code.
func TestTokenLife(t *testing.T) {
	t.Parallel()
	page := read(t, clusterAPI)
	for file, want := range map[string][2]string{
		"host/cmd/manager/flags.go": {`"bootstrap-token-ttl", 15*time.Minute`, "valid for 15 minutes"},
		"host/controller/looks.go":  {"tokenLife = 24 * time.Hour", "After 24 hours"},
	} {
		assert.Contains(t, read(t, file), want[0])
		assert.Contains(t, page, want[1])
	}
}
