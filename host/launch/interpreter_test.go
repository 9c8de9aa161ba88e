package launch

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// program32 is a 32-bit ELF header of this byte order with one PT_INTERP.
func program32(order binary.ByteOrder, interpreter string) []byte {
	var b bytes.Buffer
	data := elf.ELFDATA2LSB
	if order == binary.BigEndian {
		data = elf.ELFDATA2MSB
	}
	h := elf.Header32{Version: uint32(elf.EV_CURRENT), Phoff: 52, Phentsize: 32, Phnum: 1}
	copy(h.Ident[:], []byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(data), byte(elf.EV_CURRENT)})
	_ = binary.Write(&b, order, h) // to memory
	_ = binary.Write(&b, order, elf.Prog32{Type: uint32(elf.PT_INTERP), Off: 84, Filesz: uint32(len(interpreter) + 1)})
	b.WriteString(interpreter + "\x00")
	return b.Bytes()
}

func TestInterpreter(t *testing.T) {
	t.Parallel()
	for content, want := range map[string][2]string{
		"#!/usr/bin/python3\nprint()":           {"/usr/bin/python3", ""},
		"#! /usr/bin/env -S FOO=1 python3 -u\n": {"/usr/bin/env", "python3"},
		"#!/bin/sh":                             {"/bin/sh", ""},
		"#!\n":                                  {},
		"":                                      {},
		"\x7fELF":                               {},
		"\x7fELF garbage" + strings.Repeat("\xff", 300):      {},
		string(program32(binary.LittleEndian, "/lib/ld.so")): {"/lib/ld.so", ""},
		string(program32(binary.BigEndian, "/lib/ld.so.1")):  {"/lib/ld.so.1", ""},
	} {
		path, command := interpreter(strings.NewReader(content))
		require.Equal(t, want, [2]string{path, command}, "%q", content)
	}
}

func TestMissingInterpreter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	there := filepath.Join(dir, "env")
	require.NoError(t, os.WriteFile(there, nil, 0o600))
	cause := errors.New("cause")
	for content, want := range map[string]string{
		"#!/nowhere/python3\n":         "its interpreter /nowhere/python3 does not exist on this machine",
		"#!" + there + " python9\n":    "its interpreter python9 does not exist on this machine",
		"#!" + there + " env\n":        "cause",
		"#!" + there + "\n":            "cause",
		"no interpreter at all":        "cause",
		"#!" + dir + " of some kind\n": "cause",
	} {
		require.EqualError(t, missingInterpreter(strings.NewReader(content), []string{"PATH=" + dir}, cause), want)
	}
}

func FuzzInterpreter(f *testing.F) {
	f.Add([]byte("#!/usr/bin/env python3\n"))
	f.Add(program32(binary.BigEndian, "/lib/ld.so.1"))
	f.Fuzz(func(_ *testing.T, content []byte) { interpreter(bytes.NewReader(content)) })
}
