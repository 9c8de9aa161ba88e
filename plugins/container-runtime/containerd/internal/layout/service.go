package layout

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// serviceFiles are the files that the daemon's unit reads: its drop-in, the variables that are not for everyone's eyes
// and the certificates that it trusts. None on Windows, whose service has its environment elsewhere.
func ServiceFiles(d settings.Desired) []sdk.FileSpec {
	at := settings.PathsOf(d.OS)
	if at.Windows {
		return nil
	}
	var all []sdk.FileSpec
	if text := bundle(d); text != nil {
		all = append(all, sdk.FileSpec{Path: at.Bundle(), Content: text, Mode: 0o644})
	}
	if text := credentials(d); text != nil {
		all = append(all, sdk.FileSpec{Path: at.Environment(), Content: text, Mode: 0o600, Sensitive: true})
	}
	if text := unitDropIn(d); text != nil {
		all = append(all, sdk.FileSpec{Path: at.UnitDropIn(), Content: text, Mode: 0o644})
	}
	return all
}

// serviceEnvironment is the daemon's environment on Windows, where its service keeps it; nil elsewhere. Without variables
// it is what takes those away that an earlier version of the document asked for. What is not for everyone's eyes is
// Unsupported there and never among them.
func ServiceEnvironment(d settings.Desired) *sdk.ServiceEnvironment {
	if d.OS != "windows" {
		return nil
	}
	e := &sdk.ServiceEnvironment{}
	for _, v := range d.Environment {
		if !v.Secret {
			e.Variables = append(e.Variables, sdk.Variable{Name: v.Name, Value: string(v.Value.Reveal())})
		}
	}
	return e
}

// unitDropIn is nil when the unit stays as it is. The variables that hold credentials stand in a file of their own:
// what a unit says itself, systemd shows to everyone. Source: systemd.exec(5), Environment=.
func unitDropIn(d settings.Desired) []byte {
	var lines []string
	if n := d.Spec.OOMScore; n != nil && *n == 0 {
		// In containerd's own configuration 0 means that the unit decides.
		lines = append(lines, "OOMScoreAdjust=0")
	}
	for _, v := range d.Environment {
		if !v.Secret {
			lines = append(lines, "Environment="+quoteAssignment(v.Text()))
		}
	}
	if credentials(d) != nil {
		// Without the file the daemon shall start nevertheless: most of a node works without a proxy.
		lines = append(lines, "EnvironmentFile=-"+settings.PathsOf(d.OS).Environment())
	}
	if lines == nil {
		return nil
	}
	return fmt.Appendf(nil, "%s[Service]\n%s\n", header("systemd.exec(5)"), strings.Join(lines, "\n"))
}

// credentials is the file of variables that are secret, nil when there are none.
func credentials(d settings.Desired) []byte {
	if !slices.ContainsFunc(d.Environment, func(v settings.Variable) bool { return v.Secret }) {
		return nil
	}
	var b bytes.Buffer
	b.WriteString(header("systemd.exec(5), EnvironmentFile="))
	for _, v := range d.Environment {
		if v.Secret {
			fmt.Fprintf(&b, "%s=%s\n", v.Name, quoteValue(string(v.Value.Reveal())))
		}
	}
	return b.Bytes()
}

// bundle is the file of certificates that every pull trusts, nil when there is none.
func bundle(d settings.Desired) []byte {
	if d.Spec.TrustedCAs == "" {
		return nil
	}
	return []byte(strings.TrimSpace(d.Spec.TrustedCAs) + "\n")
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
