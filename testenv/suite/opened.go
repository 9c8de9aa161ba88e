package suite

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// opened reads a test's log (-test.testlogfile) and returns the files of the checkout that the test opened or looked for, as inputs.
// What is built there, in bin and dist, is recorded as programs.
func opened(root, dir, log string) ([]string, error) {
	data, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	root, err = filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	var files []string
	at := filepath.Join(root, dir)
	for line := range strings.Lines(string(data)) {
		action, name, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if !filepath.IsAbs(name) {
			name = filepath.Join(at, name)
		}
		switch action {
		case "chdir":
			at = filepath.Clean(name)
		case "open", "stat":
			below, err := filepath.Rel(root, filepath.Clean(name))
			if err != nil || below == "." || strings.HasPrefix(below, "..") || strings.HasPrefix(below, ".git") {
				continue
			}
			top, _, _ := strings.Cut(filepath.ToSlash(below), "/")
			if info, err := os.Stat(name); top == "bin" || top == "dist" || err == nil && info.IsDir() {
				continue
			}
			files = append(files, "file "+filepath.ToSlash(below))
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
