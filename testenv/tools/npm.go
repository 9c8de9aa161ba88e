package tools

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// The files of an npm package. lockFile pins what npm installs, with its digest.
const (
	packageFile = "package.json"
	lockFile    = "package-lock.json"
	npmConfig   = ".npmrc" // no install script runs
)

// npmFiles decide what npm installs.
func npmFiles() []string { return []string{packageFile, lockFile, npmConfig} }

// fromNPM puts the programs of the folder source into dir, as their authors compiled them: the programs of the npm package that the folder
// pins for this platform. It reports whether it did; the reason against it is on log. A folder without a lock file is not on npm.
func fromNPM(ctx context.Context, log io.Writer, source, dir string) bool {
	if _, err := os.Stat(filepath.Join(source, lockFile)); err != nil {
		return false
	}
	if err := install(ctx, source, dir); err != nil {
		fmt.Fprintln(log, "compiling, because npm does not have it:", err)
		return false
	}
	return true
}

func install(ctx context.Context, source, dir string) error {
	names, err := programs(source)
	if err != nil {
		return err
	}
	tree, err := os.MkdirTemp(dir, "npm-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tree) }() // again with dir
	if err := npmInstall(ctx, source, tree); err != nil {
		return err
	}
	for _, name := range names {
		// The package of a platform has its name behind a hyphen: @bufbuild/buf-linux-x64. npm installs the one of this platform.
		found, err := filepath.Glob(filepath.Join(tree, "node_modules", "*", "*-*", "bin", executable(name)))
		if err != nil {
			return err
		}
		if len(found) != 1 {
			return fmt.Errorf("%d packages have the program %s for this platform", len(found), name)
		}
		if err := os.Rename(found[0], executable(filepath.Join(dir, name))); err != nil {
			return err
		}
	}
	return nil
}

// npmInstall installs the packages that the folder source pins below the directory tree.
func npmInstall(ctx context.Context, source, tree string) error {
	for _, name := range npmFiles() {
		data, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tree, name), data, 0o600); err != nil {
			return err
		}
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("find npm: %w", err)
	}
	cmd := exec.CommandContext(ctx, npm, "ci")
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
}
