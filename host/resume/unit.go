package resume

import (
	"fmt"
	"strings"
)

// UnitName is the unit that resumes a run after a reboot.
const UnitName = "machineadm-resume.service"

// unitMark is the first line of every unit that this package writes. A unit without it is never replaced or removed.
const unitMark = "# Written by machineadm, which removes it when the run has ended."

// unitText renders the unit that runs argv at boot if the file condition exists.
//
// It starts after multi-user.target, so that a service which a plugin restarts does not wait for it. A unit of the operating
// system that applies the same stream at every boot then runs first and removes the condition.
func unitText(argv []string, stateDir, condition string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = unitWord(word, true)
	}
	// A condition has no escapes, and a carriage return ends a line too. Without a pending run the command does nothing.
	if strings.ContainsAny(condition, "\n\r") {
		condition = ""
	}
	return fmt.Sprintf(`%s
[Unit]
Description=Resume the preparation of this Kubernetes node
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

// unitWord quotes a word for a unit file; in a command line it escapes the dollar sign, which starts a variable.
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
