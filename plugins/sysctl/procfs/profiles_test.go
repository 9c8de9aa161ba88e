package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProfilesAreThoseOfTheContract: other providers of the kind read these as data.
func TestProfilesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../contract/v1alpha1/profiles/Sysctl.json")
	require.NoError(t, err)
	type content struct {
		Parameters map[string]string `json:"parameters"`
		Modules    []string          `json:"modules"`
	}
	var want map[string]content
	require.NoError(t, json.Unmarshal(data, &want))
	got := map[string]content{}
	for name, p := range profiles() {
		c := content{Parameters: map[string]string{}, Modules: append([]string{}, p.modules...)}
		for key, value := range p.parameters {
			c.Parameters[strings.ReplaceAll(string(key), "/", ".")] = value
		}
		got[name] = c
	}
	assert.Equal(t, want, got)
}
