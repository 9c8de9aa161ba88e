package target

import (
	"encoding/binary"
	"runtime"

	"github.com/machineadm/machineadm/internal/rooted"
)

// elfHeader is the length of the ELF header up to e_machine (elf(5)).
const elfHeader = 20

// imageArchitecture returns the architecture of the first program found in the image. An image can be baked on a machine of
// another architecture, and metadata.when applies to the node.
func imageArchitecture(root string) string {
	for _, name := range []string{"/usr/lib/systemd/systemd", "/lib/systemd/systemd", "/sbin/init", "/usr/bin/env", "/bin/sh"} {
		if architecture := elfArchitecture(root, name); architecture != "" {
			return architecture
		}
	}
	return runtime.GOARCH
}

// elfArchitecture returns the architecture of a program, or "".
func elfArchitecture(root, name string) string {
	file, err := rooted.Open(root, name)
	if err != nil {
		return ""
	}
	header := make([]byte, elfHeader)
	_, err = file.ReadAt(header, 0)
	if closeErr := file.Close(); err != nil || closeErr != nil {
		return ""
	}
	return machine(header)
}

// machine returns the GOARCH name for e_machine (elf.h).
func machine(header []byte) string {
	if len(header) < elfHeader || string(header[:4]) != "\x7fELF" {
		return ""
	}
	wide, little := header[4] == 2, header[5] == 1
	var order binary.ByteOrder = binary.BigEndian
	if little {
		order = binary.LittleEndian
	}
	switch number := order.Uint16(header[18:]); {
	case number == 62 && wide:
		return "amd64"
	case number == 183 && little:
		return "arm64"
	case number == 3:
		return "386"
	case number == 40 && little:
		return "arm"
	case number == 21 && little:
		return "ppc64le"
	case number == 21:
		return "ppc64"
	case number == 22 && wide:
		return "s390x"
	case number == 243 && wide:
		return "riscv64"
	case number == 258 && wide:
		return "loong64"
	default:
		return ""
	}
}
