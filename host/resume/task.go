package resume

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// The tasks of the Windows Task Scheduler.
const (
	TaskName   = `\machineadm\resume` // resumes a run after a reboot
	reportTask = `\machineadm\report` // sends the report of a run
)

// resumeTask renders the task that runs argv at boot.
func resumeTask(argv []string) []byte {
	return taskXML("Resumes the preparation of this Kubernetes node. machineadm removes the task when the run has ended.",
		`    <BootTrigger>
      <Enabled>true</Enabled>
    </BootTrigger>`, argv)
}

// reportTaskXML renders the task that runs argv every minute, the shortest interval of the Task Scheduler, from its registration
// and from each boot on.
func reportTaskXML(argv []string) []byte {
	trigger := func(name string) string {
		return fmt.Sprintf(`    <%[1]s>
      <Repetition>
        <Interval>PT1M</Interval>
        <StopAtDurationEnd>false</StopAtDurationEnd>
      </Repetition>
      <Enabled>true</Enabled>
    </%[1]s>`, name)
	}
	return taskXML("Sends the report of the preparation of this Kubernetes node. "+
		"machineadm removes the task when the report is delivered, or after 24 hours.",
		trigger("BootTrigger")+"\n"+trigger("RegistrationTrigger"), argv)
}

// taskXML renders a task that runs argv as SYSTEM, in UTF-16 with a byte order mark as schtasks.exe requires.
// Source: the Task Scheduler schema, version 1.2 (MS-TSCH 2.5).
func taskXML(description, triggers string, argv []string) []byte {
	arguments := make([]string, 0, len(argv))
	for _, word := range argv[1:] {
		arguments = append(arguments, windowsWord(word))
	}
	text := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>%s</Description>
  </RegistrationInfo>
  <Triggers>
%s
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>S-1-5-18</UserId>
      <RunLevel>HighestAvailable</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Enabled>true</Enabled>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>%s</Command>
      <Arguments>%s</Arguments>
    </Exec>
  </Actions>
</Task>
`, description, triggers, xmlText(argv[0]), xmlText(strings.Join(arguments, " ")))
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}

func xmlText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// windowsWord quotes an argument for CommandLineToArgvW, which treats backslashes as escapes only before a quotation mark.
func windowsWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\"") {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for _, r := range word {
		switch r {
		case '\\':
			slashes++
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, 2*slashes+1))
		default:
			b.WriteString(strings.Repeat(`\`, slashes))
		}
		slashes = 0
		b.WriteRune(r)
	}
	b.WriteString(strings.Repeat(`\`, 2*slashes) + `"`)
	return b.String()
}
