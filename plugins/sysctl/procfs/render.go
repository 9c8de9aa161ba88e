package main

import (
	"bytes"
	"fmt"
	"strings"
)

// renderSysctl is the content of the file in /etc/sysctl.d: nil when there is nothing to set. Keys of ignoreMissing
// carry the dash, so that a boot without them is no failure.
func renderSysctl(d desired) []byte {
	if len(d.parameters) == 0 {
		return nil
	}
	var b bytes.Buffer
	header(&b, d, "sysctl.d(5)")
	for _, p := range d.parameters {
		b.WriteString(p.line())
	}
	return b.Bytes()
}

func (p parameter) line() string {
	dash := ""
	if p.optional {
		dash = "-"
	}
	return strings.TrimSpace(fmt.Sprintf("%s%s = %s", dash, p.key, p.value)) + "\n"
}

// renderModules is the content of the file in /etc/modules-load.d: nil when there is nothing to load.
func renderModules(d desired) []byte {
	if len(d.modules) == 0 {
		return nil
	}
	var b bytes.Buffer
	header(&b, d, "modules-load.d(5)")
	for _, module := range d.modules {
		fmt.Fprintln(&b, module)
	}
	return b.Bytes()
}

func header(b *bytes.Buffer, d desired, manual string) {
	fmt.Fprintf(b, "# Managed by machineadm, document Sysctl/%s: what is changed here is overwritten. See %s.\n", d.name, manual)
}
