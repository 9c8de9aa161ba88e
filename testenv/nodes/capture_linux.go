package nodes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// capture is a packet socket in a hub, which is given each frame when it enters the hub and when it leaves it.
type capture struct {
	socket *os.File
	number int // the socket's descriptor
	frames bytes.Buffer
	ended  chan error
}

const (
	captureRoom  = 64 << 20 // for frames that are not read yet
	longestFrame = 128 << 10
)

func (n *Network) openCapture() (*capture, error) {
	c := &capture{ended: make(chan error, 1)}
	err := inNetNS(n.inst.netNS(), func() (err error) {
		const all = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network byte order
		c.number, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, all)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.socket = os.NewFile(uintptr(c.number), "packets")
	if err := unix.SetsockoptInt(c.number, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, captureRoom); err != nil {
		return nil, errors.Join(err, c.socket.Close())
	}
	go func() {
		frame := make([]byte, longestFrame)
		for {
			k, err := c.socket.Read(frame)
			if err != nil {
				c.ended <- err
				return
			}
			c.frames.Write(frame[:k])
		}
	}()
	return c, nil
}

// stop ends the reader and reads what it left in the socket.
func (c *capture) stop() (_ []byte, err error) {
	defer func() { err = errors.Join(err, c.socket.Close()) }()
	if err := c.socket.SetReadDeadline(time.Now()); err != nil {
		return nil, err
	}
	if err := <-c.ended; !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, err
	}
	frame := make([]byte, longestFrame)
	for {
		k, err := unix.Read(c.number, frame)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return nil, err
		}
		c.frames.Write(frame[:k])
	}
	counts, err := unix.GetsockoptTpacketStats(c.number, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && counts.Drops > 0 {
		err = fmt.Errorf("%d frames were lost", counts.Drops)
	}
	return c.frames.Bytes(), err
}
