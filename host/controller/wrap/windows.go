package wrap

import (
	"fmt"
	"strings"
)

const (
	windowsProgram = `C:\Program Files\machineadm\machineadm.exe`
	// windowsDir is below Program Files, where only administrators write, and has an access list without the right to read
	// that users have there. The program removes it after a successful run.
	windowsDir = `C:\Program Files\machineadm\firstboot`
	// limitWindowsDir is a command of cmd and of PowerShell: SYSTEM (S-1-5-18) and administrators (S-1-5-32-544) alone.
	limitWindowsDir = `icacls "` + windowsDir + `" /inheritance:r /grant "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F"`
)

// lines ends each line with CRLF, as programs of Windows expect.
func lines(text ...string) []byte { return []byte(strings.Join(text, "\r\n") + "\r\n") }

// renderCloudbaseInit has three parts, which cloudbase-init processes in their order: a script that makes the directory,
// cloud-config that writes the stream into it, and a script that runs machineadm. cloudbase-init logs what a script prints, and
// ignores exit codes but those that ask it for a reboot; machineadm reboots and resumes by itself.
func renderCloudbaseInit(packed, extra []byte) ([]byte, error) {
	const script, path = "text/x-shellscript", windowsDir + `\node.yaml`
	files, err := cloudConfigText{
		WriteFiles: []writtenFile{{Path: path, Permissions: "0600", Encoding: "gz+b64", Content: encoded(packed)}},
	}.text()
	if err != nil {
		return nil, err
	}
	parts := []part{
		{contentType: script, name: "machineadm-prepare.ps1", content: lines("#ps1_sysnative",
			"New-Item -ItemType Directory -Force '"+windowsDir+"' | Out-Null", limitWindowsDir)},
		{contentType: "text/cloud-config", content: files},
		{contentType: script, name: "machineadm-run.ps1", content: lines("#ps1_sysnative",
			fmt.Sprintf("& '%s' --bootstrap --path '%s'", windowsProgram, path),
			fmt.Sprintf("if ($LASTEXITCODE -in 0, 3) { Remove-Item -Recurse -Force '%s' }", windowsDir),
		)},
	}
	if extra != nil {
		user, err := userPart(extra, map[string]part{
			cloudConfigMark:  {contentType: "text/cloud-config"},
			"#ps1_sysnative": {contentType: script, name: "template.ps1"},
			"rem cmd":        {contentType: script, name: "template.cmd"},
		})
		if err != nil {
			return nil, err
		}
		parts = append([]part{user}, parts...)
	}
	return mixed(parts...), nil
}

const (
	// Microsoft-Windows-Deployment, RunSynchronousCommand: Path has at most 259 characters, Order is 1 to 500.
	maxCommand  = 259
	maxCommands = 500
)

// unattendCommand is a command of an answer file. reboots says that its exit code can ask for a reboot.
type unattendCommand struct {
	line    string
	reboots bool
}

// renderUnattend is an answer file whose commands write the stream in pieces, because a command is short, and run a script. Setup
// must reboot by itself, so the script asks it to with the exit code 2, and is run again afterwards. Any other code would end
// the installation: after a failure the machine starts without its sentinel, with the report for the operator.
func renderUnattend(packed []byte) ([]byte, error) {
	commands := []unattendCommand{{line: `cmd /c mkdir "` + windowsDir + `"`}, {line: limitWindowsDir}}
	script := lines(
		"$dir = '"+windowsDir+"'",
		`if (-not (Test-Path "$dir\node.yaml")) {`,
		`  $in = [IO.File]::OpenRead("$dir\node.gz")`,
		`  $gzip = New-Object IO.Compression.GZipStream($in, [IO.Compression.CompressionMode]::Decompress)`,
		`  $out = [IO.File]::Create("$dir\node.yaml")`,
		`  $gzip.CopyTo($out)`,
		`  $out.Close(); $gzip.Close()`,
		`}`,
		"& '"+windowsProgram+`' apply --path "$dir\node.yaml"`,
		`if ($LASTEXITCODE -eq 3) { exit 2 }`,
		`if ($LASTEXITCODE -eq 0) { Remove-Item -Recurse -Force $dir }`,
		`exit 0`,
	)
	commands = append(commands, writeCommands("run.ps1", script)...)
	commands = append(commands, writeCommands("node.gz", packed)...)
	commands = append(commands, unattendCommand{
		line: `powershell -NoProfile -ExecutionPolicy Bypass -File "` + windowsDir + `\run.ps1"`, reboots: true,
	})
	var out strings.Builder
	out.WriteString(`<?xml version="1.0" encoding="utf-8"?>
<unattend xmlns="urn:schemas-microsoft-com:unattend" xmlns:wcm="http://schemas.microsoft.com/WMIConfig/2002/State">
  <settings pass="specialize">
    <component name="Microsoft-Windows-Deployment" processorArchitecture="amd64" publicKeyToken="31bf3856ad364e35" language="neutral" versionScope="nonSxS">
      <RunSynchronous>
`)
	for i, c := range commands {
		fmt.Fprintf(&out, "        <RunSynchronousCommand wcm:action=\"add\"><Order>%d</Order><Path>%s</Path>", i+1, escaped(c.line))
		if c.reboots {
			out.WriteString("<WillReboot>OnRequest</WillReboot>")
		}
		out.WriteString("</RunSynchronousCommand>\n")
	}
	out.WriteString("      </RunSynchronous>\n    </component>\n  </settings>\n</unattend>\n")
	if len(commands) > maxCommands {
		return nil, &TooLargeError{Limit: maxCommands, Commands: true}
	}
	return []byte(out.String()), nil
}

// writeCommands writes a file in base64, piece by piece, and decodes it. The redirection comes first, because a digit in front
// of one would be the number of a handle.
func writeCommands(name string, content []byte) []unattendCommand {
	file := windowsDir + `\` + name
	start := fmt.Sprintf(`cmd /c >>"%s.b64" echo `, file)
	var commands []unattendCommand
	for text := encoded(content); text != ""; {
		n := min(len(text), maxCommand-len(start))
		commands = append(commands, unattendCommand{line: start + text[:n]})
		text = text[n:]
	}
	return append(commands, unattendCommand{line: fmt.Sprintf(`certutil -f -decode "%[1]s.b64" "%[1]s"`, file)})
}
