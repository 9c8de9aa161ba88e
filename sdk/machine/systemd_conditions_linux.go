package machine

import (
	"context"
	"slices"
	"strings"
)

// skipped reports whether systemd has skipped the last start of a unit, because a condition was not met.
func skipped(shown string) bool {
	lines := strings.Split(shown, "\n")
	tried := slices.ContainsFunc(lines, func(line string) bool {
		at, ok := strings.CutPrefix(line, "ConditionTimestampMonotonic=")
		return ok && at != "" && at != "0"
	})
	return tried && slices.Contains(lines, "ConditionResult=no") && slices.Contains(lines, "ActiveState=inactive")
}

// lasting are the conditions that no file decides: systemd.unit(5).
func lasting() []string {
	return []string{
		"ConditionArchitecture", "ConditionCapability", "ConditionCPUFeature", "ConditionCPUs", "ConditionFirmware", "ConditionHost",
		"ConditionKernelCommandLine", "ConditionKernelVersion", "ConditionMemory", "ConditionSecurity", "ConditionVirtualization",
	}
}

// unmet returns the first condition of a unit that is not met and that lasts; "" if there is none, or before systemd 250, where only
// systemctl status says it. The manager forgets the results with each reload, so it is not asked.
func unmet(ctx context.Context, commands Runner, unit string) string {
	result, _ := commands.Run(ctx, Command{Name: "systemd-analyze", Args: []string{"condition", "--unit=" + unit}}) // 1 if one is not met
	for line := range strings.Lines(string(result.Stdout) + string(result.Stderr)) {
		condition, failed := strings.CutSuffix(strings.TrimSpace(line), " failed.")
		condition, ours := strings.CutPrefix(condition, unit+": ")
		name, parameter, _ := strings.Cut(condition, "=")
		if failed && ours && slices.Contains(lasting(), name) && !strings.HasPrefix(parameter, "|") { // one of several with | is enough
			return condition
		}
	}
	return ""
}
