package suite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/testenv/tools"
)

// keys computes content keys: digests of all that the result of a package depends on. These are the files of its Go packages of this
// module and what is beside them, the versions of the other modules' packages, and what the run recorded: programs of
// the checkout, tools, root file systems, and each file of the checkout that a test opened.
type keys struct {
	root    string
	graph   map[string]listed
	digests map[string]string // of directories and files of the checkout
}

// listed is a package as go list shows it.
type listed struct {
	ImportPath, Dir string
	Imports         []string
	ForTest         string
	Module          *struct {
		Path, Version string
		Main          bool
	}
}

// newKeys lists every package of the module and of its tests, with all that they import.
func newKeys(ctx context.Context, root string) (*keys, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-json=ImportPath,Dir,Imports,ForTest,Module", "./...")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the checkout: %w: %s", err, &complaint)
	}
	k := &keys{root: root, graph: map[string]listed{}, digests: map[string]string{}}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return k, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		k.graph[p.ImportPath] = p
	}
}

// key is the content key of a package with the inputs that its last run recorded. An input that does not exist any more has a key,
// too: another one.
func (k *keys) key(p Package, inputs []string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version(), runtime.GOOS, runtime.GOARCH, os.Getenv("GOFLAGS"))
	for _, name := range everywhere() {
		if err := k.digest(sum, name); err != nil {
			return "", err
		}
	}
	closure := map[string]bool{}
	k.follow(p.Path(), closure)
	k.follow(p.Path()+".test", closure)
	for _, input := range inputs {
		kind, name, _ := strings.Cut(input, " ")
		switch kind {
		case "program":
			k.follow(Module+"/"+name, closure)
			// A program of a nested module is in no list: its directory is.
			if err := k.digest(sum, name); err != nil {
				return "", err
			}
		case "tool":
			tool, err := tools.Key(filepath.Join(k.root, "testenv", "tools", name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
			fmt.Fprintln(sum, input, tool)
		case "file", "tree":
			if err := k.digest(sum, name); err != nil {
				return "", err
			}
		default: // a system's name is its key
			fmt.Fprintln(sum, input)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(closure)) {
		switch listed := k.graph[name]; {
		case listed.Module == nil: // of the standard library: runtime.Version
		case !listed.Module.Main:
			fmt.Fprintln(sum, listed.Module.Path, listed.Module.Version)
		default:
			dir, err := filepath.Rel(k.root, listed.Dir)
			if err != nil {
				return "", err
			}
			if err := k.digest(sum, filepath.ToSlash(dir)); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// everywhere are inputs of every package: how programs are built, and what is installed.
func everywhere() []string {
	return []string{"testenv/tools/build.sh", "testenv/tools/netrpc", "testenv/deps/packages"}
}

func (k *keys) follow(name string, closure map[string]bool) {
	p, ok := k.graph[name]
	if !ok || closure[name] {
		return
	}
	closure[name] = true
	for _, to := range p.Imports {
		k.follow(to, closure)
	}
}

// digest adds a file of the checkout or what is in a directory, without packages below it.
func (k *keys) digest(sum hash.Hash, name string) error {
	digest, ok := k.digests[name]
	if !ok {
		own := sha256.New()
		if err := k.walk(own, name); err != nil {
			return fmt.Errorf("compute the content key: %w", err)
		}
		digest = hex.EncodeToString(own.Sum(nil))
		k.digests[name] = digest
	}
	fmt.Fprintln(sum, name, digest)
	return nil
}

func (k *keys) walk(sum hash.Hash, name string) error {
	top := filepath.Join(k.root, filepath.FromSlash(name))
	err := filepath.WalkDir(top, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if at != top && d.Name() != "testdata" && k.isPackage(at) {
				return fs.SkipDir
			}
			return nil
		case !d.Type().IsRegular():
			target, err := os.Readlink(at)
			fmt.Fprintln(sum, at[len(top):], "->", target)
			return err
		}
		data, err := os.ReadFile(at)
		fmt.Fprintln(sum, at[len(top):], len(data))
		sum.Write(data)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(sum, "absent")
		return nil
	}
	return err
}

func (k *keys) isPackage(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(files) > 0
}
