package nodes

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestCacheTriesAgain runs in fake time, so that pauses take none.
func TestCacheTriesAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script  string // of the builder; $1 is the number of the try
		offline bool
		builds  int
		took    time.Duration
		fails   bool
	}{
		"the archive returns":     {script: `test "$1" = 3`, builds: 3, took: 25 * time.Second},
		"the archive stays away":  {script: "exit 100", builds: 3, took: 25 * time.Second, fails: true},
		"no network is needed":    {script: "exit 1", offline: true, builds: 1, fails: true},
		"no builder is installed": {script: "exit 127", builds: 1, fails: true},
		"the first build is good": {script: ":", builds: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				builds := 0
				a := artefact{what: "test", key: "key", offline: c.offline, build: func(ctx context.Context, site buildSite) error {
					builds++
					if fileExists(filepath.Join(site.dir, "tree")) {
						t.Error("a try starts in what the one before left")
					}
					return errors.Join(writesTree(site), exec.CommandContext(ctx, "sh", "-c", c.script, "sh", strconv.Itoa(builds)).Run())
				}}
				began := time.Now()
				_, err := tempCache(t).once(t.Context(), a, t.Logf)
				if took := time.Since(began); (err != nil) != c.fails || builds != c.builds || took != c.took {
					t.Errorf("%d builds in %s, error %v; want %d in %s, an error: %v", builds, took, err, c.builds, c.took, c.fails)
				}
			})
		})
	}
}

func TestCanceledPauseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := artefact{what: "test", key: "key", build: func(ctx context.Context, _ buildSite) error {
			return exec.CommandContext(ctx, "sh", "-c", "exit 100").Run()
		}}
		if _, err := tempCache(t).once(ctx, a, t.Logf); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}
