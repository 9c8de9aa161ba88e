package ready

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// ports checks that nothing listens where Kubernetes will.
func (c *checker) ports(context.Context) error {
	want := []int{10250}
	if c.s.ControlPlane() {
		want = append(want, c.s.Port(), 10257, 10259)
		if c.s.Spec.Etcd == nil || c.s.Spec.Etcd.External == nil {
			want = append(want, 2379, 2380)
		}
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := c.m.FS.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, port := range listening(text) {
			at := slices.Index(want, port)
			if at < 0 || c.s.Ignores("Port-"+strconv.Itoa(port)) {
				continue
			}
			want = slices.Delete(want, at, at+1)
			c.miss("", fmt.Sprintf("a process listens on the port %d, which Kubernetes needs", port),
				fmt.Sprintf("find it with ss -ltnp sport = :%d and stop it, then run again", port))
		}
	}
	return nil
}

// listening returns the ports of listening sockets in the form of /proc/net/tcp.
func listening(text []byte) []int {
	var ports []int
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[3] != "0A" { // TCP_LISTEN
			continue
		}
		_, number, _ := strings.Cut(fields[1], ":")
		if port, err := strconv.ParseUint(number, 16, 16); err == nil {
			ports = append(ports, int(port))
		}
	}
	return ports
}
