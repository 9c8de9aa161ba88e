//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/sdk/machinetest"
)

func TestPlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, diff string }{
		"another text": {"new", "--- a/etc/motd\n+++ b/etc/motd\n@@ -1 +1 @@\n-old\n+new\n"},
		"as it is":     {"  old\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fixture := machinetest.New(t)
			fixture.WriteFiles(t, map[string]string{"/etc/motd": "old\n"})
			var document Motd
			document.Spec.Text = test.text
			got, err := plan(t.Context(), fixture.Machine, document)
			if err != nil {
				t.Fatal(err)
			}
			var diff strings.Builder
			for _, change := range got.Changes {
				diff.WriteString(change.Diff)
			}
			if diff.String() != test.diff {
				t.Errorf("diff\n%s\nwant\n%s", diff.String(), test.diff)
			}
		})
	}
}

func TestPlanRefusesADocumentWithoutText(t *testing.T) {
	t.Parallel()
	_, err := plan(t.Context(), machinetest.New(t).Machine, Motd{})
	if err == nil || !strings.Contains(err.Error(), "spec.text: is required") {
		t.Errorf("error %v", err)
	}
}
