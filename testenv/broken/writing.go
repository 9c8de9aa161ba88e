package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/sdk"
)

// hold is the pause in the middle of a change.
func hold() {
	wait := time.NewTimer(pause)
	<-wait.C
}

// slowly gives Stop the time to arrive.
func slowly(_ string, _ sdk.FileSpec, sound func() error) error {
	hold()
	return sound()
}

// place is where a file goes, links followed inside the root, with its directory made.
func place(root string, spec sdk.FileSpec) (string, error) {
	path, err := securejoin.SecureJoin(root, spec.Path)
	if err != nil {
		return "", err
	}
	return path, makeDirectories(filepath.Dir(path))
}

// makeDirectories makes what is missing with the mode 0755, whatever the umask.
func makeDirectories(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := makeDirectories(filepath.Dir(dir)); err != nil {
		return err
	}
	// Already with the mode of the usual umask: a SIGKILL can come before chmod.
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // as everybody's
		return err
	}
	return os.Chmod(dir, 0o755) //nolint:gosec // as everybody's
}

// litter writes beside the file and renames, under a name that the next process does not find again.
func litter(root string, spec sdk.FileSpec, _ func() error) error {
	path, err := place(root, spec)
	if err != nil {
		return err
	}
	temporary := path + ".new" + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(temporary, spec.Content, 0o600); err != nil {
		return err
	}
	hold()
	return errors.Join(os.Chmod(temporary, spec.Mode), os.Rename(temporary, path))
}

// inHalves writes beside the file and renames, but under a name that others use at the same time.
func inHalves(root string, spec sdk.FileSpec, _ func() error) error {
	path, err := place(root, spec)
	if err != nil {
		return err
	}
	return errors.Join(halves(path+".new", os.O_APPEND, spec), rename(path))
}

// inPlace overwrites the file itself, too fast for a reader to find a part of it.
func inPlace(root string, spec sdk.FileSpec, _ func() error) (err error) {
	hold()
	path, err := place(root, spec)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.Write(spec.Content)
	return errors.Join(err, file.Chmod(spec.Mode))
}

// inTwoSteps replaces files in one step each, but the second one twice: with the change of the first it gets half of its
// content. So a SIGKILL between the two finds it so, whenever it comes.
func inTwoSteps(root string, spec sdk.FileSpec, sound func() error) error {
	hold()
	if err := sound(); err != nil || spec.Path != "/etc/app/greeting" {
		return err
	}
	path, err := place(root, sdk.FileSpec{Path: "/etc/app/farewell"})
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, []byte("goodb"), atomicfile.Options{Mode: 0o644})
}

// appendAgain writes the content once more behind what is there.
func appendAgain(root string, spec sdk.FileSpec) error {
	path, err := place(root, spec)
	if err != nil {
		return err
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, append(have, spec.Content...), atomicfile.Options{Mode: spec.Mode})
}

// belowUsr leaves a copy of what it writes in /usr, as a cache.
func belowUsr(root string, spec sdk.FileSpec, sound func() error) error {
	path, err := place(root, sdk.FileSpec{Path: "/usr/lib/app/cache"})
	if err != nil {
		return err
	}
	return errors.Join(sound(), atomicfile.WriteFile(path, spec.Content, atomicfile.Options{Mode: 0o644}))
}

// machineName is the directory below which, on this machine, the test has everything that rootless and its like write.
const machineName = "machine-of-the-test"

// harmless says whether a path of a document is the test's own on this machine: /etc is in documents too.
func harmless(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/"+machineName+"/")
}

// rootless also writes the file where its path says, with no root before it.
func rootless(_ string, spec sdk.FileSpec, sound func() error) error {
	if err := sound(); err != nil || !harmless(spec.Path) {
		return err
	}
	return os.WriteFile(spec.Path, spec.Content, spec.Mode)
}

// rootlessDirectory makes a directory beside it that no case names, which only the first of its runs does.
func rootlessDirectory(_ string, spec sdk.FileSpec, sound func() error) error {
	if err := sound(); err != nil || !harmless(spec.Path) {
		return err
	}
	return os.MkdirAll(spec.Path+".d", 0o755) //nolint:gosec // as everybody's
}

// halves writes a file in two steps, with time for something to come in between.
func halves(path string, flags int, spec sdk.FileSpec) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|flags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	half := len(spec.Content) / 2
	if _, err := file.Write(spec.Content[:half]); err != nil {
		return err
	}
	hold()
	hold()
	_, err = file.Write(spec.Content[half:])
	return errors.Join(err, file.Chmod(spec.Mode))
}

// umasked asks for a mode and takes what the umask leaves of it.
func umasked(root string, spec sdk.FileSpec, _ func() error) error {
	path, err := place(root, spec)
	if err != nil {
		return err
	}
	mode := spec.Mode
	if mode == 0o644 {
		mode = 0o666 // what those ask for who rely on a umask
	}
	mask, err := umask()
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, spec.Content, atomicfile.Options{Mode: mode &^ mask})
}

func umask() (os.FileMode, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), "Umask:")
	digits, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
	mask, err := strconv.ParseUint(digits, 8, 32)
	return os.FileMode(mask), err
}

// trusting takes the root for a prefix of paths.
func trusting(root string, spec sdk.FileSpec, _ func() error) error {
	path := filepath.Join(root, spec.Path)
	if err := makeDirectories(filepath.Dir(path)); err != nil {
		return err
	}
	return atomicfile.WriteFile(path, spec.Content, atomicfile.Options{Mode: spec.Mode})
}

// unlocking uses the name of G-12 without a lock.
func unlocking(root string, spec sdk.FileSpec, _ func() error) error {
	hold()
	path, err := place(root, spec)
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), atomicfile.TemporaryName(filepath.Base(path)))
	err = os.WriteFile(temporary, spec.Content, spec.Mode)
	for _, step := range []error{os.Chmod(temporary, spec.Mode), os.Rename(temporary, path)} {
		if !errors.Is(step, os.ErrNotExist) { // else another one has renamed the same content
			err = errors.Join(err, step)
		}
	}
	return err
}

// cache keeps something in /var/tmp, if that is not the one of this machine.
func cache(pluginv1.Request) error {
	mine, err := os.Readlink("/proc/self/ns/mnt")
	parent, failed := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", os.Getppid()))
	if err != nil || failed != nil || mine == parent {
		return errors.Join(err, failed)
	}
	return os.WriteFile("/var/tmp/broken", []byte("planned\n"), 0o600)
}

// rename puts the file in place. Of two at once, the second finds that the first has done it.
func rename(path string) error {
	if err := os.Rename(path+".new", path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func runTrue(pluginv1.Request) error {
	return exec.CommandContext(context.Background(), "true").Run()
}
