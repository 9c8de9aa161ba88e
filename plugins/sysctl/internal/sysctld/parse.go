package sysctld

import (
	"bytes"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Rules selects the program whose reading of the files applies.
type Rules int

const (
	// Systemd is systemd-sysctl(8), which runs at boot on systems with systemd.
	Systemd Rules = iota
	// Procps is procps' sysctl --system, which other init systems run at boot, and administrators run by hand.
	Procps
)

// longestLine is the length at which systemd-sysctl stops reading a file (LONG_LINE_MAX in its sources).
const longestLine = 1 << 20

// Line is one assignment or exclusion of a file.
type Line struct {
	// Number is the line's number in the file, from 1.
	Number int
	// Key is a slash path, or a pattern of one. systemd removes leading, repeated and trailing slashes; procps does not.
	Key string
	// Value is the value to write; empty where Exclude is set.
	Value string
	// Exclude marks "-key" without a value: patterns do not apply to the key.
	Exclude bool
	// IgnoreFailure marks "-key = value".
	IgnoreFailure bool
}

// Parse parses the text of one file. Comments, empty lines and lines that are neither an assignment nor an exclusion are
// left out, as the programs do (sysctl.d(5), sysctl.conf(5)).
func Parse(data []byte, rules Rules) []Line {
	var lines []Line
	blank, next := " \t\n\r", systemdLine
	if rules == Procps {
		blank, next = " \t\n\v\f\r", procpsLine
	}
	for number := 1; len(data) > 0; number++ {
		var raw []byte
		raw, data = next(data)
		if rules == Systemd && len(raw) >= longestLine {
			break
		}
		text := strings.Trim(string(raw), blank)
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		if line, ok := parseLine(text, blank, rules); ok {
			line.Number = number
			lines = append(lines, line)
		}
	}
	return lines
}

func parseLine(text, blank string, rules Rules) (Line, bool) {
	key, value, assigns := strings.Cut(text, "=")
	key, dash := strings.CutPrefix(key, "-")
	if !assigns && !dash {
		return Line{}, false
	}
	if rules == Systemd {
		key = simplify(v1alpha1.SysctlPath(strings.Trim(key, blank)))
	} else {
		// procps keeps blanks after the dash, which then name no parameter, and drops a second dash.
		key = v1alpha1.SysctlPath(strings.TrimPrefix(strings.TrimRight(key, blank), "-"))
	}
	return Line{
		Key:           key,
		Value:         strings.Trim(value, blank),
		Exclude:       !assigns,
		IgnoreFailure: assigns && dash,
	}, true
}

// systemdLine cuts off the next line. Line feed, carriage return and NUL end a line; different ones in a row end it
// together (CRLF is one end), and nothing follows a NUL.
func systemdLine(data []byte) (line, rest []byte) {
	end := bytes.IndexAny(data, "\n\r\x00")
	if end < 0 {
		return data, nil
	}
	rest = data[end:]
	seen := ""
	for len(rest) > 0 && strings.IndexByte("\n\r\x00", rest[0]) >= 0 {
		if strings.IndexByte(seen, rest[0]) >= 0 || strings.IndexByte(seen, 0) >= 0 {
			break
		}
		seen += string(rune(rest[0]))
		rest = rest[1:]
	}
	return data[:end], rest
}

// procpsLine cuts off the next line, which ends at a line feed. A NUL ends the text of the line, as it ends a C string.
func procpsLine(data []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(data, []byte("\n"))
	line, _, _ = bytes.Cut(line, []byte{0})
	return line, rest
}
