package target

import (
	"encoding/binary"
	"runtime"

	"github.com/machineadm/machineadm/internal/rooted"
)

// elfHeader is as much of the header as says the machine: elf(5), e_ident and e_machine.
const elfHeader = 20

// imageArchitecture reads for which machine the image's programs are. Images are baked on machines of another
// architecture too, and metadata.when must judge the node, not the bench. The first program found decides.
func imageArchitecture(root string) string {
	for _, name := range []string{"/usr/lib/systemd/systemd", "/lib/systemd/systemd", "/sbin/init", "/usr/bin/env", "/bin/sh"} {
		if architecture := elfArchitecture(root, name); architecture != "" {
			return architecture
		}
	}
	return runtime.GOARCH
}

// elfArchitecture is empty for whatever is not a program of a known architecture.
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

// machine maps e_machine to GOARCH (the numbers are those of elf.h).
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
