package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

// NodeModules returns a directory node_modules of the cache, to link to. It has the packages of npm that the lock file in a folder of the
// test pins. make installs them before the tests, for every such folder.
func NodeModules(t testing.TB, of string) string {
	t.Helper()
	require.Tool(t, "node")
	require.Tool(t, "npm")
	of, err := filepath.Abs(of)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := npmFolders(of); err != nil || !slices.Contains(all, of) {
		t.Fatalf("%s is not among the folders whose packages are installed before the tests: %q, %v", of, all, err)
	}
	modules, err := nodeModules(t.Context(), t.Output(), of)
	if err != nil {
		require.Missing(t, err.Error())
	}
	return modules
}

// InstallNodeModules installs all that NodeModules returns. Without npm it does nothing: the tests are skipped. dir is any directory
// inside the checkout.
func InstallNodeModules(ctx context.Context, log io.Writer, dir string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		fmt.Fprintln(log, "tests that need packages of npm are skipped:", err)
		return nil
	}
	all, err := npmFolders(dir)
	if err != nil {
		return err
	}
	for _, source := range all {
		if _, err := nodeModules(ctx, log, source); err != nil {
			return err
		}
	}
	return nil
}

// npmFolders lists the folders testenv/PACKAGE/FOLDER that have a lock file of npm. Tools of testenv/tools are not among them.
func npmFolders(dir string) ([]string, error) {
	root, err := Root(dir)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(root, "testenv", "*", "*", lockFile))
	if err != nil {
		return nil, fmt.Errorf("list the lock files of npm: %w", err)
	}
	var all []string
	for _, file := range files {
		if at := filepath.Dir(file); filepath.Dir(at) != filepath.Join(root, folder) {
			all = append(all, at)
		}
	}
	return all, nil
}

// nodeModules installs the packages of a folder unless the cache has them.
func nodeModules(ctx context.Context, log io.Writer, source string) (modules string, err error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.GOOS, runtime.GOARCH) // no script runs, so that the version of Node.js does not count
	for _, name := range npmFiles() {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, name, len(data))
		sum.Write(data)
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set HOME): %w", err)
	}
	cache := filepath.Join(caches, "machineadm-testenv", "npm", filepath.Base(source)+"-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	held, err := lock(ctx, cache)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	modules = filepath.Join(cache, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	fmt.Fprintf(log, "installing the packages of %s (once; kept in %s)\n", source, cache)
	scratch := filepath.Join(cache, "new")
	for try := 1; ; try++ { // npm itself waits before it asks a server again
		err := errors.Join(os.RemoveAll(scratch), os.Mkdir(scratch, 0o755))
		if err == nil {
			err = npmInstall(ctx, source, scratch)
		}
		if err == nil {
			return modules, errors.Join(os.Rename(filepath.Join(scratch, "node_modules"), modules), os.RemoveAll(scratch))
		}
		if try == 3 || ctx.Err() != nil {
			return "", fmt.Errorf("install the packages of %s: %w", source, err)
		}
		fmt.Fprintln(log, "is tried again:", err)
	}
}
