package install

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	after := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, test := range map[string]struct {
		Options
		product string
		seen    uint64
		before  string
		now     time.Time
		wrong   bool // the clock
		err     string
		warning string
	}{
		"first":                {},
		"same again":           {Options: Options{Version: "v0.1.0"}, seen: 7},
		"newer":                {seen: 6},
		"older":                {seen: 8, err: "has sequence 7, and one of sequence 8 was installed here"},
		"same version":         {seen: 7, before: "v0.1.0"},
		"same sequence":        {seen: 7, before: "v0.1.1", err: "has sequence 7, which is that of v0.1.1"},
		"same, allowed":        {Options: Options{AllowDowngrade: "v0.1.0"}, seen: 7, before: "v0.1.1"},
		"older, allowed":       {Options: Options{AllowDowngrade: "v0.1.0"}, seen: 8},
		"older, other allowed": {Options: Options{AllowDowngrade: "v0.0.9"}, seen: 8, err: "has sequence 7"},
		"another version":      {Options: Options{Version: "v0.2.0"}, err: "has the release v0.1.0, and not v0.2.0"},
		"another product":      {product: "other", err: `the manifest is of "other", and not of machineadm`},
		"in time":              {now: after.Add(-time.Second)},
		"expired":              {now: after, err: "expired at 2030-01-02T03:04:05Z"},
		"wrong clock":          {now: after, wrong: true, warning: "expired at 2030-01-02T03:04:05Z, which is not checked: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &manifest.Manifest{Name: product, Version: "v0.1.0", Sequence: 7, Expires: &after}
			if test.product != "" {
				m.Name = test.product
			}
			warning := ""
			test.Warn = func(message string) { warning = message }
			err := admit(m, test.Options, newest{test.seen, test.before}, test.now, !test.wrong)
			assert.Contains(t, warning, test.warning)
			if test.err == "" {
				require.NoError(t, err)
				assert.Equal(t, test.warning == "", warning == "")
				return
			}
			failed := new(Error)
			require.ErrorAs(t, err, &failed)
			assert.Contains(t, failed.Problem, test.err)
			assert.NotEmpty(t, failed.Remedy)
			assert.Equal(t, report.ExitUntrusted, failed.Code)
			assert.True(t, failed.elsewhere)
		})
	}
}
