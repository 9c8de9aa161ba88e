// Package tools builds the programs that generate, check and test this repository.
// Each is a nested Go module in the folder beside this file that bears the program's name: its go.mod pins the version,
// its go.sum the content, and nothing of it enters the product's module graph.
package tools

import (
	"bytes"
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
	"strings"
	"time"
)

const (
	module = "module github.com/machineadm/machineadm\n"
	folder = "testenv/tools" // where the nested modules live, below the root of the repository
)

// Path returns the absolute path of the named tool and builds it first when the cache does not hold it yet.
// What it does is told on log. dir is any directory inside the checkout.
func Path(ctx context.Context, log io.Writer, dir, name string) (string, error) {
	root, err := Root(dir)
	if err != nil {
		return "", err
	}
	source := filepath.Join(root, folder, name)
	key, err := Key(source)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no tool %q below %s: %w", name, folder, err)
	} else if err != nil {
		return "", err
	}
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory (set HOME): %w", err)
	}
	cache := filepath.Join(caches, "machineadm-testenv", "tools", key)
	binary := filepath.Join(cache, name)
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	return binary, build(ctx, log, source, cache, filepath.Base(binary))
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
		names = append(names, filepath.Base(filepath.Dir(mod)))
	}
	slices.Sort(names)
	return names, nil
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

// Key names the build of the tool whose module is at source: it changes with the module's pins, the Go release and the platform.
func Key(source string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(source, file))
		if err != nil {
			return "", fmt.Errorf("read the pins of a tool: %w", err)
		}
		fmt.Fprintln(sum, file, len(data))
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// build compiles beside the cache entry and renames, so that neither a killed build nor two at once leave half a binary.
func build(ctx context.Context, log io.Writer, source, cache, binary string) (err error) {
	began := time.Now()
	fmt.Fprintf(log, "building the tool %s (once; kept in %s)\n", binary, cache)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make the tool cache: %w", err)
	}
	scratch, err := os.MkdirTemp(cache, ".build-")
	if err != nil {
		return fmt.Errorf("make the tool cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w", "-o", scratch+string(filepath.Separator), "tool")
	cmd.Dir, cmd.Env = source, environment()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the tool %s: %w", binary, err)
	}
	if err := os.Rename(filepath.Join(scratch, binary), filepath.Join(cache, binary)); err != nil {
		return fmt.Errorf("keep the tool %s: %w", binary, err)
	}
	fmt.Fprintf(log, "built %s in %s\n", binary, time.Since(began).Round(time.Second))
	return nil
}

// environment is the caller's without what would build for another platform or in another module.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOOS", "GOARCH", "GOFLAGS", "GOWORK"}, name)
	})
	return append(env, "CGO_ENABLED=0", "GOWORK=off")
}
