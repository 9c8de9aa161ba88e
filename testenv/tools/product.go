package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/internal/require"
)

// Products copies programs of the checkout into a directory, stripped and without C libraries, so that any node runs them. Each
// name maps to the directory of a main package below the root of the checkout, such as host/cmd/machineadm. The originals
// are in bin/ of the checkout and are linked again only when they have changed, because tests of many packages need them.
func Products(ctx context.Context, into string, sources map[string]string) error {
	for name, source := range sources {
		if err := require.Record("program", source); err != nil {
			return err
		}
		if err := product(ctx, source, filepath.Join(into, name)); err != nil {
			return fmt.Errorf("build %s: %w", source, err)
		}
	}
	return nil
}

func product(ctx context.Context, source, to string) error {
	root, err := Root(".")
	if err != nil {
		return err
	}
	return perRun(ctx, root, strings.ReplaceAll(source, "/", "-"),
		func(at string) error { // the source can be a module of its own
			return require.Build(ctx, filepath.Join(root, source), filepath.Join(at, "program"))
		},
		func(at string) error { return require.CopyProgram(to, filepath.Join(at, "program")) })
}

// Location is where `machineadm install` of the programs of All looks for releases.
const Location = "https://releases.example.com/latest"

// All copies the programs of `make build` into a directory, with their names and stamps. All tests of a run share one build.
func All(ctx context.Context, into string) error {
	const programs = "programs"
	root, err := Root(".")
	if err != nil {
		return err
	}
	return perRun(ctx, root, "all",
		func(at string) error {
			c := exec.CommandContext(ctx, filepath.Join(root, "testenv", "tools", "build.sh"), "all", filepath.Join(at, programs))
			c.Env = append(os.Environ(), "LOCATION="+Location)
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("build all programs: %w\n%s", err, out)
			}
			return nil
		},
		func(at string) error {
			listed, err := exec.CommandContext(ctx, filepath.Join(root, "testenv", "tools", "build.sh"), "served").Output()
			if err != nil {
				return fmt.Errorf("list the programs: %w", err)
			}
			for line := range strings.Lines(string(listed)) {
				name, source, _ := strings.Cut(strings.TrimSpace(line), " ./")
				if err := errors.Join(require.Record("program", source), require.CopyProgram(filepath.Join(into, name), filepath.Join(at, programs, name))); err != nil {
					return err
				}
			}
			return nil
		})
}

// perRun calls build, unless this run of all tests has done so, and then use. Both get a directory below bin of the checkout, which is
// locked until they return.
func perRun(ctx context.Context, root, name string, build, use func(at string) error) (err error) {
	at := filepath.Join(root, "bin", "testenv", name)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	held, err := lock(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	mark, run := filepath.Join(at, "run"), os.Getenv(runVariable)
	if built, err := os.ReadFile(mark); err != nil || run == "" || string(built) != run {
		if err := build(at); err != nil {
			return err
		}
		if err := os.WriteFile(mark, []byte(run), 0o600); err != nil {
			return err
		}
	}
	return use(at)
}

// runVariable names a run of all tests, during which the sources stay as they are: the compiler looks at them once for each program,
// instead of once for each program and package, which takes it a second of processor time.
const runVariable = "MACHINEADM_TEST_RUN"
