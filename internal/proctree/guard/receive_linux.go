package guard

import (
	"errors"
	"syscall"
)

var errHostGone = errors.New("the host is gone")

// receive waits for the next order. The descriptors that come with it are closed on exec.
func receive(socket int) (Order, []int, error) {
	var length [lengthBytes]byte
	descriptors, err := receiveFirst(socket, length[:])
	if err != nil {
		return Order{}, nil, err
	}
	n := number(length[:])
	if n > maxOrder {
		return Order{}, descriptors, errors.New("an order of this length cannot be")
	}
	message := make([]byte, n)
	if err := readFull(socket, message); err != nil {
		return Order{}, descriptors, err
	}
	o, err := Decode(message)
	if err == nil && len(descriptors) != o.descriptors() {
		err = errors.New("the descriptors are not those of the order")
	}
	return o, descriptors, err
}

// receiveFirst reads the length, with which the descriptors come.
func receiveFirst(socket int, length []byte) (descriptors []int, err error) {
	control := make([]byte, syscall.CmsgSpace(4*MaxFiles))
	for got := 0; got < len(length); {
		n, controlled, _, _, err := syscall.Recvmsg(socket, length[got:], control, syscall.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return descriptors, err
		case n == 0:
			return descriptors, errHostGone
		}
		got += n
		more, err := rights(control[:controlled])
		descriptors = append(descriptors, more...)
		if err != nil {
			return descriptors, err
		}
	}
	return descriptors, nil
}

func rights(control []byte) (descriptors []int, err error) {
	messages, err := syscall.ParseSocketControlMessage(control)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		more, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return descriptors, err
		}
		descriptors = append(descriptors, more...)
	}
	return descriptors, nil
}

func readFull(socket int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Read(socket, p)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return err
		case n == 0:
			return errHostGone
		}
		p = p[n:]
	}
	return nil
}

// answer tells the host. A host that is gone is noticed when it is next listened to.
func answer(socket int, a Answer) {
	for message := a.Encode(); len(message) > 0; {
		n, err := syscall.SendmsgN(socket, message, nil, nil, syscall.MSG_NOSIGNAL)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		message = message[n:]
	}
}
