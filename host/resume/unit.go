package resume

import (
	"fmt"
	"strings"
)

// UnitName is the unit that resumes a run after a reboot.
const UnitName = "machineadm-resume.service"

// ownMark begins the first line of every unit that this package writes. A unit without it is never replaced or removed.
const ownMark = "# Written by machineadm, which removes it when "

// The first lines of the units.
const (
	unitMark   = ownMark + "the run has ended."
	reportMark = ownMark + "the report is delivered, or after 24 hours."
)

// unitText renders the unit that runs argv at boot if the file condition exists.
//
// It starts after multi-user.target, so that a service which a plugin restarts does not wait for it. A unit of the operating
// system that applies the same stream at every boot then runs first and removes the condition.
func unitText(argv []string, stateDir, condition string) string {
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
`, unitMark, conditionPath(condition), unitWord(stateDir, false), commandLine(argv))
}

// reportServiceText renders the service that runs argv once, if the program is installed. The exit code 7 means that the report
// still waits.
func reportServiceText(argv []string, stateDir string) string {
	return fmt.Sprintf(`%s
[Unit]
Description=Send the report of the preparation of this Kubernetes node
Documentation=man:machineadm(8)
ConditionPathExists=%s
RequiresMountsFor=%s
Wants=network-online.target
After=network-online.target

[Service]
Type=oneshot
TimeoutStartSec=120
SuccessExitStatus=7
ExecStart=%s
`, reportMark, conditionPath(argv[0]), unitWord(stateDir, false), commandLine(argv))
}

// conditionPath renders a path as the value of a condition, which has no escapes: one with a line break is left out. A carriage
// return ends a line too. The commands do nothing without a run or a report that waits.
func conditionPath(path string) string {
	if strings.ContainsAny(path, "\n\r") {
		return ""
	}
	return strings.ReplaceAll(path, "%", "%%")
}

// reportTimerText renders the timer of that service. The command itself waits longer after each failed try.
func reportTimerText() string {
	return reportMark + `
[Unit]
Description=Send the report of the preparation of this Kubernetes node
Documentation=man:machineadm(8)

[Timer]
OnActiveSec=30
OnUnitInactiveSec=30
RandomizedDelaySec=5
AccuracySec=1

[Install]
WantedBy=timers.target
`
}

// commandLine renders argv as the value of ExecStart.
func commandLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = unitWord(word, true)
	}
	return strings.Join(quoted, " ")
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
