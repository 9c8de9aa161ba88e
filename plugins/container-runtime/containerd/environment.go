package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

// serviceFiles are the files that the daemon's unit reads: its drop-in, the variables that are not for everyone's eyes
// and the certificates that it trusts. None on Windows, whose service has its environment elsewhere.
func (d desired) serviceFiles() []sdk.FileSpec {
	at := pathsOf(d.os)
	if at.windows {
		return nil
	}
	var all []sdk.FileSpec
	if text := d.bundle(); text != nil {
		all = append(all, sdk.FileSpec{Path: at.bundle(), Content: text, Mode: 0o644})
	}
	if text := d.credentials(); text != nil {
		all = append(all, sdk.FileSpec{Path: at.environment(), Content: text, Mode: 0o600, Sensitive: true})
	}
	if text := d.unitDropIn(); text != nil {
		all = append(all, sdk.FileSpec{Path: at.unitDropIn(unit), Content: text, Mode: 0o644})
	}
	return all
}

// serviceEnvironment is the daemon's environment on Windows, where its service keeps it; nil elsewhere. Without variables
// it is what takes those away that an earlier version of the document asked for. What is not for everyone's eyes is
// Unsupported there and never among them.
func (d desired) serviceEnvironment() *sdk.ServiceEnvironment {
	if d.os != "windows" {
		return nil
	}
	e := &sdk.ServiceEnvironment{}
	for _, v := range d.environment {
		if !v.secret {
			e.Variables = append(e.Variables, sdk.Variable{Name: v.name, Value: string(v.value.Reveal())})
		}
	}
	return e
}

// unitDropIn is nil when the unit stays as it is. The variables that hold credentials stand in a file of their own:
// what a unit says itself, systemd shows to everyone. Source: systemd.exec(5), Environment=.
func (d desired) unitDropIn() []byte {
	var lines []string
	if n := d.spec.OOMScore; n != nil && *n == 0 {
		// In containerd's own configuration 0 means that the unit decides.
		lines = append(lines, "OOMScoreAdjust=0")
	}
	for _, v := range d.environment {
		if !v.secret {
			lines = append(lines, "Environment="+quoteAssignment(v.text()))
		}
	}
	if d.credentials() != nil {
		// Without the file the daemon shall start nevertheless: most of a node works without a proxy.
		lines = append(lines, "EnvironmentFile=-"+pathsOf(d.os).environment())
	}
	if lines == nil {
		return nil
	}
	return fmt.Appendf(nil, "%s[Service]\n%s\n", header("systemd.exec(5)"), strings.Join(lines, "\n"))
}

// credentials is the file of variables that are secret, nil when there are none.
func (d desired) credentials() []byte {
	if !slices.ContainsFunc(d.environment, func(v variable) bool { return v.secret }) {
		return nil
	}
	var b bytes.Buffer
	b.WriteString(header("systemd.exec(5), EnvironmentFile="))
	for _, v := range d.environment {
		if v.secret {
			fmt.Fprintf(&b, "%s=%s\n", v.name, quoteValue(string(v.value.Reveal())))
		}
	}
	return b.Bytes()
}

// bundle is the file of certificates that every pull trusts, nil when there is none.
func (d desired) bundle() []byte {
	if d.spec.TrustedCAs == "" {
		return nil
	}
	return []byte(strings.TrimSpace(d.spec.TrustedCAs) + "\n")
}

// mark begins every file that is ours alone. It names no document: of a stream with two equal ones, both write the same.
const mark = "# Managed by machineadm, kind ContainerRuntime"

func header(manual string) string {
	return mark + ": what is changed here is overwritten. See " + manual + ".\n"
}

// quoteAssignment writes NAME=VALUE for Environment=: within double quotes a backslash and a quote are escaped, and a
// percent sign begins a specifier. A dollar sign is itself there. Source: systemd.exec(5), systemd.syntax(7),
// systemd.unit(5).
func quoteAssignment(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(text) + `"`
}

// quoteValue writes a value for EnvironmentFile=, as a shell would read it; nothing is expanded there, percent signs
// neither.
func quoteValue(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}
