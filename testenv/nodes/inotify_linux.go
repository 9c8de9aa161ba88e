package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// inotifyInstances is more than a node needs of those that all processes of a user share: systemd and its services have about ten,
// a kubelet and its containers twenty.
const inotifyInstances = 32

// awaitInotify waits for a node's inotify(7) instances, of which Linux allows a user 128: the nodes of other packages may have most of
// them, and systemd does not boot without. It waits no longer than those nodes live.
func awaitInotify(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return poll(limited, 500*time.Millisecond, fmt.Sprintf("%d free inotify instances, of which other nodes have most", inotifyInstances), func() (free bool, err error) {
		var taken []*os.File
		defer func() {
			for _, f := range taken {
				err = errors.Join(err, f.Close())
			}
		}()
		for range inotifyInstances {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if errors.Is(err, unix.EMFILE) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			taken = append(taken, os.NewFile(uintptr(fd), "inotify"))
		}
		return true, nil
	})
}
