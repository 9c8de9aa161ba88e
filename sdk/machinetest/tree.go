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

// Tree describes everything below root, one line each, in order: type and permission bits, path, and the target of a link
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

// Diff returns the lines that only one of two trees has: "-" for the lines of before, then "+" for the lines of after.
func Diff(before, after string) string {
	var b strings.Builder
	for _, side := range []struct{ sign, tree, other string }{{"-", before, after}, {"+", after, before}} {
		others := map[string]bool{}
		for line := range strings.Lines(side.other) {
			others[line] = true
		}
		for line := range strings.Lines(side.tree) {
			if !others[line] {
				b.WriteString(side.sign + line)
			}
		}
	}
	return b.String()
}
