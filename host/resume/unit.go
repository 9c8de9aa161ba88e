package resume

import (
	"fmt"
	"strings"
)

// UnitName is the unit that goes on with a run after a reboot.
const UnitName = "machineadm-resume.service"

// unitMark heads every unit that this package wrote: any other of this name is somebody else's.
const unitMark = "# Written by machineadm, which removes it when the run has ended."

// unitText renders the unit that runs argv at boot if the file condition is there.
//
// It comes after multi-user.target, so that no service which a plugin restarts waits for it, and after a unit of the
// operating system that runs the same stream at every boot: that one finishes the run, and this one is passed over.
func unitText(argv []string, stateDir, condition string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = unitWord(word, true)
	}
	// A condition has no escapes, and a line ends at a carriage return too. Without it the command finds nothing to do.
	if strings.ContainsAny(condition, "\n\r") {
		condition = ""
	}
	return fmt.Sprintf(`%s
[Unit]
Description=Go on preparing this machine to be a Kubernetes node
Documentation=man:machineadm(8)
ConditionPathExists=%s
RequiresMountsFor=%s
Wants=network-online.target
After=network-online.target multi-user.target

[Service]
Type=oneshot
TimeoutStartSec=infinity
TimeoutStopSec=90
KillMode=mixed
SuccessExitStatus=3
StandardOutput=journal+console
StandardError=journal+console
ExecStart=%s

[Install]
WantedBy=multi-user.target
`, unitMark, strings.ReplaceAll(condition, "%", "%%"), unitWord(stateDir, false), strings.Join(quoted, " "))
}

// unitWord quotes a word for a unit file; in a command line a dollar sign would begin a variable.
// Source: systemd.syntax(7), systemd.service(5), "Command lines".
func unitWord(word string, command bool) string {
	pairs := []string{`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "%", "%%"}
	if command {
		pairs = append(pairs, "$", "$$")
	}
	escaped := strings.NewReplacer(pairs...).Replace(word)
	if escaped == word && word != "" && !strings.ContainsAny(word, " ';") {
		return word
	}
	return `"` + escaped + `"`
}
