package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// overlay is a writable view of read-only directories.
type overlay struct {
	lowers            []string // topmost first
	upper, work, root string
}

// newOverlay makes the directories of an overlay inside dir without mounting it. The upper directory gives the merged
// root its mode, which must not depend on the umask.
func newOverlay(dir string, lowers []string) (overlay, error) {
	o := overlay{lowers: lowers, upper: filepath.Join(dir, "upper"), work: filepath.Join(dir, "work"), root: filepath.Join(dir, "root")}
	for _, d := range []string{o.upper, o.work, o.root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return o, err
		}
		if err := os.Chmod(d, 0o755); err != nil {
			return o, err
		}
	}
	return o, nil
}

// options are for mount(8) and mount(2). volatile leaves out every sync to the disk: neither a node nor an unfinished
// build is kept beyond the life of this machine.
func (o overlay) options() string {
	escape := strings.NewReplacer(`\`, `\\`, `:`, `\:`, `,`, `\,`)
	lowers := make([]string, len(o.lowers))
	for i, l := range o.lowers {
		lowers[i] = escape.Replace(l)
	}
	return fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,volatile",
		strings.Join(lowers, ":"), escape.Replace(o.upper), escape.Replace(o.work))
}

func (o overlay) mount() error {
	if err := unix.Mount("overlay", o.root, "overlay", 0, o.options()); err != nil {
		return fmt.Errorf("mount overlay on %s: %w", o.root, err)
	}
	return nil
}
