// Package tools builds the programs that generate, check and test this repository.
// Each is a nested Go module in the folder beside this file with the program's name: its go.mod pins the version,
// its go.sum the content, and nothing of it enters the product's module graph. A folder with another name, for several
// programs or several versions of one, has the tools FOLDER/PROGRAM; they are built together, into one directory.
// Main packages of one name have the name of the folder above them as well, unless it is cmd: kubeadm, bootstrap-kubeadm,
// controlplane-kubeadm.
// A file ldflags in a folder has further flags of the linker, such as the version that the program prints. The flags of the compiler
// are the product's, so that packages that other programs share, such as the standard library, are compiled once.
// A file package-lock.json in a folder pins the npm package with the program of the same version as its authors compiled it. It is
// taken where npm is installed; elsewhere the program is compiled, which takes minutes (npm.go).
// A folder may hold main packages of its own, where the authors' one builds more than the tests need. They are in the
// folder, or one level below it.
//
// Products and All build programs of the checkout itself, for the tests of many packages. NodeModules has packages of npm for one test.
package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/require"
)

const (
	module      = "module github.com/machineadm/machineadm\n"
	folder      = "testenv/tools" // where the nested modules live, below the root of the repository
	linkerFlags = "ldflags"       // the file with a tool's own flags of the linker
)

// Path returns the absolute path of the named tool and builds it first when the cache does not hold it yet.
// It reports its steps on log. dir is any directory inside the checkout.
func Path(ctx context.Context, log io.Writer, dir, name string) (string, error) {
	root, err := Root(dir)
	if err != nil {
		return "", err
	}
	set, program, several := strings.Cut(name, "/")
	if !several {
		program = set
	}
	source := filepath.Join(root, folder, set)
	key, err := Key(source)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no tool %q below %s: %w", name, folder, err)
	} else if err != nil {
		return "", err
	}
	if all, err := programs(source); err != nil {
		return "", err
	} else if !slices.Contains(all, program) || several == (program == set) {
		return "", fmt.Errorf("there is no tool %q below %s: %s builds %q", name, folder, set, all)
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set HOME): %w", err)
	}
	cache := filepath.Join(caches, "machineadm-testenv", "tools", key)
	binary := executable(filepath.Join(cache, program))
	if err := require.Record("tool", set); err != nil {
		return "", err
	}
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	return binary, buildOnce(ctx, log, source, cache, binary)
}

// buildOnce builds, unless another process has built the binary in the meantime.
func buildOnce(ctx context.Context, log io.Writer, source, cache, binary string) (err error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make the tool cache: %w", err)
	}
	held, err := lock(ctx, cache)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	return build(ctx, log, source, cache)
}

// Names lists the tools of the checkout that holds dir, sorted.
func Names(dir string) ([]string, error) {
	root, err := Root(dir)
	if err != nil {
		return nil, err
	}
	mods, err := filepath.Glob(filepath.Join(root, folder, "*", "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	names := make([]string, 0, len(mods))
	for _, mod := range mods {
		source := filepath.Dir(mod)
		all, err := programs(source)
		if err != nil {
			return nil, err
		}
		for _, program := range all {
			if set := filepath.Base(source); program != set {
				program = set + "/" + program
			}
			names = append(names, program)
		}
	}
	slices.Sort(names)
	return names, nil
}

// programs returns the names of the programs that the module at source builds, in the order of its go.mod.
func programs(source string) ([]string, error) {
	mains, err := mainPackages(source)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(mains))
	for _, main := range mains {
		names = append(names, programName(main, mains))
	}
	return names, nil
}

// programName is the name of the program that a main package of a module builds.
func programName(main string, all []string) string {
	name, above := path.Base(main), path.Base(path.Dir(main))
	for _, other := range all {
		if other != main && path.Base(other) == name && above != "cmd" {
			return above + "-" + name
		}
	}
	return name
}

// mainPackages reads the tool lines of a go.mod.
func mainPackages(source string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("read the pins of a tool: %w", err)
	}
	var mains []string
	block := false
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "tool" && words[1] == "(":
			block = true
		case len(words) == 1 && words[0] == ")":
			block = false
		case len(words) == 2 && words[0] == "tool":
			mains = append(mains, words[1])
		case block && len(words) == 1:
			mains = append(mains, words[0])
		}
	}
	return mains, nil
}

// Root returns the top of the checkout that holds dir.
func Root(dir string) (string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the root of the repository: %w", err)
	}
	for {
		mod, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(mod, []byte(module)) {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("%s is not inside a checkout of machineadm", dir)
		}
		at = up
	}
}

// Key names the build of the tool whose module is at source: it changes with the module's pins, its own source and flags,
// the Go release and the platform.
func Key(source string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	files, tree := []string{"go.mod", "go.sum"}, os.DirFS(source)
	for _, pattern := range []string{"*.go", "*/*.go", linkerFlags, packageFile, lockFile, npmConfig} {
		own, err := fs.Glob(tree, pattern)
		if err != nil {
			return "", fmt.Errorf("list the source of a tool: %w", err)
		}
		files = append(files, own...)
	}
	for _, file := range files {
		data, err := fs.ReadFile(tree, file)
		if err != nil {
			return "", fmt.Errorf("read the pins of a tool: %w", err)
		}
		fmt.Fprintln(sum, file, len(data))
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// ownFlags are the flags in a file of the tool's folder. Most tools have none.
func ownFlags(source, file string) (string, error) {
	data, err := os.ReadFile(filepath.Join(source, file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the %s of a tool: %w", file, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// build makes the programs beside the cache entry and renames them, so that a killed build does not leave half a binary.
func build(ctx context.Context, log io.Writer, source, cache string) (err error) {
	began, name := time.Now(), filepath.Base(source)
	fmt.Fprintf(log, "building the tool %s (once; kept in %s)\n", name, cache)
	scratch, err := os.MkdirTemp(cache, ".build-")
	if err != nil {
		return fmt.Errorf("make the tool cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if !fromNPM(ctx, log, source, scratch) {
		if err := compile(ctx, log, source, scratch); err != nil {
			return fmt.Errorf("build the tool %s: %w", name, err)
		}
	}
	built, err := os.ReadDir(scratch)
	if err != nil {
		return fmt.Errorf("keep the tool %s: %w", name, err)
	}
	for _, binary := range built {
		if err := os.Rename(filepath.Join(scratch, binary.Name()), filepath.Join(cache, binary.Name())); err != nil {
			return fmt.Errorf("keep the tool %s: %w", name, err)
		}
	}
	fmt.Fprintf(log, "built %s in %s\n", name, time.Since(began).Round(time.Second))
	return nil
}

// compile builds the programs of the module at source into dir.
func compile(ctx context.Context, log io.Writer, source, dir string) error {
	linker, err := ownFlags(source, linkerFlags)
	if err != nil {
		return err
	}
	commands, err := compilations(source, dir)
	if err != nil {
		return err
	}
	for _, packages := range commands {
		arguments := append([]string{
			"build", "-buildvcs=false", "-trimpath",
			"-gcflags=all=-dwarf=false", // the linker drops what a debugger reads
			"-ldflags=-s -w " + linker, "-o",
		}, packages...)
		cmd := exec.CommandContext(ctx, "go", arguments...)
		cmd.Dir, cmd.Env = source, environment()
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}

// compilations are the outputs and main packages of the builds: all at once into a directory, but those whose name is not the
// directory's, which would overwrite each other.
func compilations(source, dir string) ([][]string, error) {
	mains, err := mainPackages(source)
	if err != nil {
		return nil, err
	}
	var apart [][]string
	together := []string{dir + string(filepath.Separator)}
	for _, main := range mains {
		if name := programName(main, mains); name == path.Base(main) {
			together = append(together, main)
		} else {
			apart = append(apart, []string{executable(filepath.Join(dir, name)), main})
		}
	}
	if len(together) > 1 {
		apart = append(apart, together)
	}
	return apart, nil
}

func executable(path string) string {
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	return path
}

// environment is the caller's without what would build for another platform or in another module.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOOS", "GOARCH", "GOFLAGS", "GOWORK"}, name)
	})
	return append(env, "CGO_ENABLED=0", "GOWORK=off")
}
