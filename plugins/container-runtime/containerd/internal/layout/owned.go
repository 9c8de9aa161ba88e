package layout

import (
	"bytes"
)

// mark begins every file that is ours alone. It names no document: of a stream with two equal ones, both write the same.
const mark = "# Managed by machineadm, kind ContainerRuntime"

func header(manual string) string {
	return mark + ": what is changed here is overwritten. See " + manual + ".\n"
}

func managed(text []byte) bool { return bytes.HasPrefix(text, []byte(mark)) }
