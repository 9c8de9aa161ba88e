package guard

import (
	"errors"
	"strconv"
)

// Order is what a host tells its guard: to start a program, or, if Path is empty, to kill one.
//
// On the wire it is its length, in 4 bytes of which the first counts most, and its parts, each ended by a NUL, which
// none of them can hold. The descriptors come with the first byte.
type Order struct {
	ID   int // the host's own number for the program
	Path string
	Dir  string // empty: the guard's own
	// Files says which of the descriptors 0, 1, 2, ... the program gets.
	Files []bool
	// Opened: the last descriptor that is sent along is the program, which is executed instead of what Path leads to.
	Opened bool
	// Arguments begin with argv[0].
	Arguments, Environment []string
}

const (
	lengthBytes = 4
	// maxOrder is far above what execve(2) takes.
	maxOrder = 64 << 20
	// MaxFiles is how many descriptors fit into one message (SCM_MAX_FD, unix(7)).
	MaxFiles = 253
)

// Encode makes the order a message.
func (o Order) Encode() ([]byte, error) {
	files := make([]byte, len(o.Files))
	for i, given := range o.Files {
		files[i] = '0'
		if given {
			files[i] = '1'
		}
	}
	opened := ""
	if o.Opened {
		opened = "opened"
	}
	parts := append([]string{
		strconv.Itoa(o.ID), o.Path, o.Dir, string(files), opened, strconv.Itoa(len(o.Arguments)),
	}, o.Arguments...)
	parts = append(parts, o.Environment...)
	var length [lengthBytes]byte
	message := length[:]
	for _, part := range parts {
		for i := range len(part) {
			if part[i] == 0 {
				return nil, errors.New("a program's path, arguments and environment cannot hold a NUL byte")
			}
		}
		message = append(append(message, part...), 0)
	}
	n := len(message) - lengthBytes
	if n > maxOrder {
		return nil, errors.New("the arguments and the environment are too long")
	}
	putNumber(message, n)
	return message, nil
}

// Decode is the order of a message without its length.
func Decode(message []byte) (Order, error) {
	const fixed = 6
	var parts []string
	begin := 0
	for i, b := range message {
		if b == 0 {
			parts = append(parts, string(message[begin:i]))
			begin = i + 1
		}
	}
	if begin < len(message) {
		return Order{}, errors.New("the last part has no end")
	}
	if len(parts) < fixed {
		return Order{}, errors.New("too few parts")
	}
	id, err := strconv.Atoi(parts[0])
	if err != nil {
		return Order{}, errors.New("the ID is not a number")
	}
	arguments, err := strconv.Atoi(parts[5])
	if err != nil || arguments < 0 || arguments > len(parts)-fixed {
		return Order{}, errors.New("the number of arguments is not a number of arguments")
	}
	o := Order{
		ID: id, Path: parts[1], Dir: parts[2], Opened: parts[4] != "",
		Arguments: parts[fixed : fixed+arguments], Environment: parts[fixed+arguments:],
	}
	for _, given := range []byte(parts[3]) {
		o.Files = append(o.Files, given == '1')
	}
	return o, nil
}

// descriptors is how many come with the order.
func (o Order) descriptors() int {
	n := 0
	for _, given := range o.Files {
		if given {
			n++
		}
	}
	if o.Opened {
		n++
	}
	return n
}

// Event is what a guard tells its host of a program.
type Event byte

const (
	// Started comes with the process ID.
	Started Event = iota + 1
	// Failed comes with the errno(3) of what could not be done.
	Failed
	// Ended comes with the exit status, or 128 and the number of the signal that ended the program. Its descendants
	// are gone too.
	Ended
)

// Answer is an event. On the wire it always has AnswerBytes.
type Answer struct {
	Event Event
	ID    int
	Value int
}

// AnswerBytes is the length of an answer.
const AnswerBytes = 1 + 2*lengthBytes

// Encode makes the answer a message.
func (a Answer) Encode() []byte {
	message := make([]byte, AnswerBytes)
	message[0] = byte(a.Event)
	putNumber(message[1:], a.ID)
	putNumber(message[1+lengthBytes:], a.Value)
	return message
}

// DecodeAnswer reads a message of AnswerBytes.
func DecodeAnswer(message [AnswerBytes]byte) Answer {
	return Answer{Event: Event(message[0]), ID: number(message[1:]), Value: number(message[1+lengthBytes:])}
}

func putNumber(to []byte, n int) {
	to[0], to[1], to[2], to[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
}

func number(from []byte) int {
	return int(from[0])<<24 | int(from[1])<<16 | int(from[2])<<8 | int(from[3])
}
