package state

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/machineadm/machineadm/internal/rooted"
)

// maxChoices is far above the size of a valid file.
const maxChoices = 1 << 20

// Prepared is a machine or an image that was prepared and becomes an image. Only a process that holds its lock uses it.
type Prepared struct {
	Root             string // of the image; "" means the live machine
	StateDir, RunDir string // in the file system of this process
	MachineID        string // the machine's; an image can have none
	BootID           string
}

// Below returns the path of a directory of an image. Links are resolved relative to root.
func Below(root, dir string) (string, error) {
	return securejoin.SecureJoin(root, dir[len(filepath.VolumeName(dir)):])
}

// Unfinished returns why the preparation is not complete: "" if no run waits for its reboot or for an operator. reboot means
// that a reboot continues it.
func (p Prepared) Unfinished() (why string, reboot bool, err error) {
	store := Store{dir: p.StateDir}
	if mine, err := p.mine(); err != nil || !mine {
		return "", false, err
	}
	pending, err := store.Pending()
	switch {
	case err != nil:
		return "", false, err
	case pending != nil && pending.Resting:
		return "a run of " + pending.File + " failed after its reboot", false, nil
	case pending != nil:
		return "a run of " + pending.File + " waits for its reboot", true, nil
	}
	requests, err := store.Reboots(p.BootID).Requests()
	if err != nil || len(requests) == 0 {
		return "", false, err
	}
	return requests[0].Document + " has requested a reboot", true, nil
}

// Clean removes what belongs to this machine alone, and returns the removed paths and the providers that the image keeps:
// the ones chosen on this machine, and of earlier bakes. It can be repeated, also after a crash.
func (p Prepared) Clean() (removed []string, kept map[string]string, err error) {
	if kept, err = p.keepChoices(); err != nil {
		return nil, nil, err
	}
	var paths []string
	for _, name := range []string{ReportFile, DetailsFile, earlierFile} {
		paths = append(paths, filepath.Join(p.RunDir, name))
	}
	for _, name := range stateNames() {
		paths = append(paths, filepath.Join(p.StateDir, name))
	}
	for _, path := range paths {
		if _, err := os.Lstat(path); absent(err) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return removed, kept, stateError(err)
		}
		removed = append(removed, path)
	}
	return removed, kept, nil
}

// keepChoices writes the providers chosen on this machine to the file of the image, before the state is removed.
func (p Prepared) keepChoices() (map[string]string, error) {
	kept, err := p.imageChoices()
	if err != nil {
		return nil, err
	}
	if mine, err := p.mine(); err != nil || !mine {
		return kept, err
	}
	chosen, err := (&Store{dir: p.StateDir}).Choices()
	if err != nil {
		return nil, err
	}
	image := (&Store{}).ForImage(p.Root, kept)
	for _, document := range slices.Sorted(maps.Keys(chosen)) {
		if err := image.Choose(document, chosen[document]); err != nil {
			return nil, err
		}
	}
	return image.choices, nil
}

// imageChoices returns the providers that earlier bakes chose.
func (p Prepared) imageChoices() (map[string]string, error) {
	choices := map[string]string{}
	err := within(p.Root, func(root *rooted.Root) error {
		data, err := root.ReadFile(ImageChoices, maxChoices)
		if err == nil {
			choices, err = ParseChoices(data)
		}
		return err
	})
	if err != nil && !absent(err) {
		path := filepath.Join(p.Root, ImageChoices)
		return nil, stateError(fmt.Errorf("%s is damaged: %w; remove it, and the providers are chosen anew", path, err))
	}
	return choices, nil
}

// mine reports whether the state belongs to this machine. The state of another one is void.
func (p Prepared) mine() (bool, error) {
	owner, err := os.ReadFile(filepath.Join(p.StateDir, machineFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, stateError(err)
	}
	name := strings.TrimSpace(string(owner))
	return name == "" || p.MachineID == "" || name == p.MachineID, nil
}
