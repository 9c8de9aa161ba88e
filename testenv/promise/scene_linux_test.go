package promise_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// scene is an image, in the order of its making, and the stream that is tried on it.
type scene struct {
	steps  []part
	stream stream
	killed time.Duration // when an apply in a copy is killed; 0 is never
}

// part is an action, or an earlier stream that is applied.
type part struct {
	action
	applied stream
}

// stream is what the documents are, in their order.
type stream []document

// document has fields of its specification as YAML.
type document struct {
	kind, name, when string
	spec             []string
}

func (s stream) text() string {
	var out []string
	for _, d := range s {
		out = append(out, fmt.Sprintf("apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: %s\nmetadata: {name: %s%s}\nspec: {%s}\n",
			d.kind, d.name, d.when, strings.Join(d.spec, ", ")))
	}
	return strings.Join(out, "---\n")
}

// action changes one path of an image.
type action struct{ op, path, text string }

// The operations. What an earlier action made impossible is left out, as in the script.
const (
	opFile      = "file"
	opDirectory = "directory"
	opLink      = "link"
	opPipe      = "pipe"
	opRemove    = "remove"
	opMode      = "mode"
	opOwner     = "owner"
	opAttribute = "attribute" // i: immutable, a: append-only
	opTwice     = "twice"     // the content once more
	opCRLF      = "crlf"
	opCut       = "cut"
	opBOM       = "bom"
)

func (c *scene) do(op, path, text string) {
	c.steps = append(c.steps, part{action: action{op, path, text}})
}

// image makes the image of a scene.
func (l *lane) image(t *testing.T, c *scene) *machine {
	t.Helper()
	l.unlock()
	m := l.newMachine(t, false)
	require.NoError(t, os.MkdirAll(m.root, 0o755))
	for _, p := range c.steps {
		if p.applied != nil {
			m.host(t, p.applied.text(), "apply")
		} else {
			_ = m.act(p.action)
		}
	}
	return m
}

// act does an action. A link of the image that leads out of it is not followed: the action then fails.
func (m *machine) act(a action) (err error) {
	root, err := os.OpenRoot(m.root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	switch a.op {
	case opFile, opDirectory, opLink, opPipe:
		if err := root.MkdirAll(filepath.Dir(a.path), 0o755); err != nil {
			return err
		}
	}
	switch a.op {
	case opFile:
		return rewrite(root, a.path, func([]byte) []byte { return []byte(a.text) })
	case opDirectory:
		return root.Mkdir(a.path, 0o755)
	case opLink:
		if err := root.Remove(a.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Symlink(a.text, a.path)
	case opPipe:
		return inParent(root, a.path, func(dir int, base string) error { return unix.Mkfifoat(dir, base, 0o644) })
	case opRemove:
		return root.RemoveAll(a.path)
	case opMode:
		mode, err := strconv.ParseUint(a.text, 8, 32)
		if err != nil {
			return err
		}
		if os.Geteuid() != 0 {
			mode |= 0o700 // a plan asks for no permissions of its user, because another user can apply it
		}
		return inParent(root, a.path, func(dir int, base string) error {
			return unix.Fchmodat(dir, base, uint32(mode), unix.AT_SYMLINK_NOFOLLOW)
		})
	case opOwner:
		var user, group int
		if _, err := fmt.Sscanf(a.text, "%d:%d", &user, &group); err != nil {
			return err
		}
		return root.Lchown(a.path, user, group)
	case opAttribute:
		f, err := root.OpenFile(a.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		return setAttributes(f, map[string]int{"i": unix.STATX_ATTR_IMMUTABLE, "a": unix.STATX_ATTR_APPEND}[a.text])
	case opTwice:
		return rewrite(root, a.path, func(b []byte) []byte { return append(b, b...) })
	case opCRLF:
		return rewrite(root, a.path, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) })
	case opCut:
		return rewrite(root, a.path, func(b []byte) []byte { return b[:len(b)*2/3] })
	case opBOM:
		return rewrite(root, a.path, func(b []byte) []byte { return append([]byte("\ufeff"), b...) })
	}
	return fmt.Errorf("no operation %q", a.op)
}

// rewrite changes a regular file, or one that is not there; a write to a pipe would wait for a reader.
func rewrite(root *os.Root, name string, change func([]byte) []byte) error {
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		return fs.ErrInvalid
	}
	data, err := root.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return root.WriteFile(name, change(data), 0o644)
}

// inParent calls a function with the directory of a path.
func inParent(root *os.Root, name string, do func(dir int, base string) error) error {
	dir, err := root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(do(int(dir.Fd()), filepath.Base(name)), dir.Close())
}

func setAttributes(f *os.File, flags int) error {
	return errors.Join(unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags), f.Close())
}

// unlock takes the attributes away that keep an image from being removed.
func (l *lane) unlock() {
	_ = filepath.WalkDir(filepath.Join(l.dir, "image"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			if f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0); err == nil {
				_ = setAttributes(f, 0)
			}
		}
		return nil
	})
}

// locked reports whether a scene has such attributes.
func (c *scene) locked() bool {
	return slices.ContainsFunc(c.steps, func(p part) bool { return p.op == opAttribute })
}

// entries are every path of an image, each with its mode, owner, and content or target.
func (m *machine) entries(t *testing.T) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	require.NoError(t, filepath.WalkDir(m.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var owner syscall.Stat_t
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			owner = *s
		}
		e := entry{info.Mode(), fmt.Sprintf("%d:%d", owner.Uid, owner.Gid), ""}
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			e.text = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if e.text, err = os.Readlink(path); err != nil {
				return err
			}
		}
		out[strings.TrimPrefix(path, m.root)] = e
		return nil
	}))
	return out
}

type entry struct {
	mode  fs.FileMode
	owner string
	text  string
}

// differences are the paths at which two trees differ.
func differences(a, b map[string]entry) []string {
	var out []string
	for name, e := range a {
		if other, there := b[name]; !there {
			out = append(out, name+" is gone")
		} else if e != other {
			out = append(out, fmt.Sprintf("%s was %v and is %v", name, e, other))
		}
	}
	for name, e := range b {
		if _, there := a[name]; !there {
			out = append(out, fmt.Sprintf("%s is new: %v", name, e))
		}
	}
	slices.Sort(out)
	return out
}

// smaller are the scenes with one thing less.
func (c *scene) smaller() []*scene {
	var out []*scene
	for i, p := range c.steps {
		out = append(out, &scene{slices.Delete(slices.Clone(c.steps), i, i+1), c.stream, c.killed})
		for _, less := range p.applied.smaller() {
			steps := slices.Clone(c.steps)
			steps[i].applied = less
			out = append(out, &scene{steps, c.stream, c.killed})
		}
	}
	for _, less := range c.stream.smaller() {
		out = append(out, &scene{c.steps, less, c.killed})
	}
	if c.killed != 0 {
		out = append(out, &scene{c.steps, c.stream, 0})
	}
	return out
}

// smaller are the streams with one document or one field less.
func (s stream) smaller() []stream {
	var out []stream
	for i, d := range s {
		if len(s) > 1 {
			out = append(out, slices.Delete(slices.Clone(s), i, i+1))
		}
		for j := range d.spec {
			if len(d.spec) > 1 {
				less := slices.Clone(s)
				less[i].spec = slices.Delete(slices.Clone(d.spec), j, j+1)
				out = append(out, less)
			}
		}
	}
	return out
}

// smallest removes what a fault does not need.
func (l *lane) smallest(t *testing.T, c *scene) *scene {
	t.Helper()
	for again := true; again; {
		again = false
		for _, less := range c.smaller() {
			if faults, _ := l.faults(t, less); len(faults) > 0 {
				c, again = less, true
				break
			}
		}
	}
	return c
}

// script makes the scene again, with the programs of the directory BIN, and tries it.
func (c *scene) script() string {
	out := "#!/bin/bash\nW=$(mktemp -d); R=$W/root; mkdir -m 700 $W/state $W/run; mkdir $R\n" +
		"run() { cat >$W/s.yaml; chmod 600 $W/s.yaml; for c; do $BIN/machineadm $c --path $W/s.yaml --root $R --state-dir $W/state --run-dir $W/run --plugin-dir $BIN --allow-secrets; echo \"exit $?\"; done; }\n"
	stream := func(s stream, commands string) string { return "run " + commands + " <<'EOF'\n" + s.text() + "EOF\n" }
	for _, p := range c.steps {
		if p.applied != nil {
			out += stream(p.applied, "apply")
		} else {
			out += p.line()
		}
	}
	return out + stream(c.stream, "plan apply plan")
}

// line is the action as a line of the script.
func (a action) line() string {
	path, text := `"$R/`+a.path+`"`, strconv.QuoteToASCII(a.text)
	text = "'" + strings.NewReplacer(`\"`, `"`, `'`, `\x27`).Replace(text[1:len(text)-1]) + "'" // of printf %b
	above := "mkdir -p " + `"$R/` + filepath.Dir(a.path) + `"; `
	return map[string]string{
		opFile:      above + "printf %b " + text + " >" + path,
		opDirectory: above + "mkdir " + path,
		opLink:      above + "ln -sfn " + text + " " + path,
		opPipe:      above + "mkfifo " + path,
		opRemove:    "rm -rf " + path,
		opMode:      "chmod " + a.text + " " + path,
		opOwner:     "chown -h " + a.text + " " + path,
		opAttribute: "chattr +" + a.text + " " + path,
		opTwice:     "cat " + path + " " + path + " >$W/x; cat $W/x >" + path,
		opCRLF:      `sed -i 's/$/\r/' ` + path,
		opCut:       "truncate -s $(($(stat -c %s " + path + ") * 2 / 3)) " + path,
		opBOM:       `sed -i '1s/^/\xef\xbb\xbf/' ` + path,
	}[a.op] + "\n"
}
