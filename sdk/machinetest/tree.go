package machinetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tree describes everything below root, one line each, in order: type and permission bits, path, and what a link says
// or a hash and the length of a file's contents. Modification times, owners and the root itself are left out.
//
//	-rw-r--r-- /etc/hosts 1a2b3c4d5e6f 13
//	Lrwxrwxrwx /etc/mtab -> /proc/self/mounts
func Tree(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		line, err := describe(root, path, entry)
		b.WriteString(line)
		return err
	})
	if err != nil {
		t.Fatalf("describe the tree: %v", err)
	}
	return b.String()
}

func describe(root, path string, entry fs.DirEntry) (string, error) {
	info, err := entry.Info()
	if err != nil {
		return "", err
	}
	line := fmt.Sprintf("%v /%s", info.Mode(), filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator))))
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		target, err := os.Readlink(path)
		return line + " -> " + target + "\n", err
	case 0:
		data, err := os.ReadFile(path)
		sum := sha256.Sum256(data)
		return fmt.Sprintf("%s %x %d\n", line, sum[:6], len(data)), err
	default:
		return line + "\n", nil
	}
}

// Diff returns the lines of two trees that differ, "-" those of before and "+" those of after, empty for equal trees.
func Diff(before, after string) string {
	var b strings.Builder
	old, now := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(old) > 0 && len(now) > 0 && old[0] == now[0]:
			old, now = old[1:], now[1:]
		case len(now) == 0 || len(old) > 0 && pathOf(old[0]) <= pathOf(now[0]):
			b.WriteString(prefixed("-", old[0]))
			old = old[1:]
		default:
			b.WriteString(prefixed("+", now[0]))
			now = now[1:]
		}
	}
	return b.String()
}

func prefixed(sign, line string) string {
	if line == "" {
		return ""
	}
	return sign + line
}

// pathOf orders as filepath.WalkDir walks: by segment.
func pathOf(line string) string {
	_, path, ok := strings.Cut(line, " ")
	if !ok {
		return "\xff" // The end of a tree.
	}
	switch line[0] {
	case 'L':
		path, _, _ = strings.Cut(path, " -> ")
	case '-':
		fields := strings.Split(path, " ") // The last two are hash and length.
		path = strings.Join(fields[:max(1, len(fields)-2)], " ")
	}
	return strings.ReplaceAll(path, "/", "\x00")
}
