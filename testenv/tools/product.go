package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
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

func product(ctx context.Context, source, to string) (err error) {
	root, err := Root(".")
	if err != nil {
		return err
	}
	at := filepath.Join(root, "bin", "testenv", strings.ReplaceAll(source, "/", "-"))
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	held, err := lock(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	binary, mark, run := filepath.Join(at, "program"), filepath.Join(at, "run"), os.Getenv(runVariable)
	if built, err := os.ReadFile(mark); err != nil || run == "" || string(built) != run {
		if err := require.Build(ctx, filepath.Join(root, source), binary); err != nil { // the source can be a module of its own
			return err
		}
		if err := os.WriteFile(mark, []byte(run), 0o600); err != nil {
			return err
		}
	}
	return require.CopyProgram(to, binary)
}

// runVariable names a run of all tests, during which the sources stay as they are: the compiler looks at them once for each program,
// instead of once for each program and package, which takes it a second of processor time.
const runVariable = "MACHINEADM_TEST_RUN"
