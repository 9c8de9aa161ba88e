package sysctld

import (
	"bytes"
	"strings"
)

// Rules says whose reading of the files is meant.
type Rules int

const (
	// Systemd is systemd-sysctl(8), which runs at boot on systems with systemd.
	Systemd Rules = iota
	// Procps is procps' sysctl --system, which boot scripts elsewhere run, and people everywhere.
	Procps
)

// longestLine is where systemd-sysctl gives up on a file (LONG_LINE_MAX of its sources).
const longestLine = 1 << 20

// Line is one line of a file that says something about a key.
type Line struct {
	// Number is the line's number in the file, from 1.
	Number int
	// Key is a slash path, or a pattern of one. systemd cleans it up (no leading, doubled or trailing slash), procps
	// leaves that to the kernel.
	Key string
	// Value is what to write. It means nothing where Exclude is set.
	Value string
	// Exclude marks "-key" without a value: patterns leave the key alone.
	Exclude bool
	// IgnoreFailure marks "-key = value".
	IgnoreFailure bool
}

// Problem is a line that the programs pass over with a complaint.
type Problem struct {
	Number  int
	Message string
}

// Parse reads the text of one file. Comments and empty lines are left out; a bad line is a Problem and the reading
// goes on, as it does in the programs. Source: sysctl.d(5), sysctl.conf(5).
func Parse(data []byte, rules Rules) ([]Line, []Problem) {
	var lines []Line
	var problems []Problem
	blank := " \t\n\r"
	next := systemdLine
	if rules == Procps {
		blank = " \t\n\v\f\r"
		next = procpsLine
	}
	for number := 1; len(data) > 0; number++ {
		var raw []byte
		raw, data = next(data)
		if rules == Systemd && len(raw) >= longestLine {
			problems = append(problems, Problem{number, "line of 1 MiB or more; the rest of the file is not read"})
			break
		}
		text := strings.Trim(string(raw), blank)
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		line, ok := parseLine(text, blank, rules)
		if !ok {
			problems = append(problems, Problem{number, "neither an assignment nor an exclusion"})
			continue
		}
		line.Number = number
		lines = append(lines, line)
	}
	return lines, problems
}

func parseLine(text, blank string, rules Rules) (Line, bool) {
	key, value, assigns := strings.Cut(text, "=")
	key, dash := strings.CutPrefix(key, "-")
	if !assigns && !dash {
		return Line{}, false
	}
	if rules == Systemd {
		key = simplify(interchange(strings.Trim(key, blank)))
	} else {
		// procps keeps blanks after the dash, which then name no parameter, and drops a second dash.
		key = interchange(strings.TrimPrefix(strings.TrimRight(key, blank), "-"))
	}
	return Line{
		Key:           key,
		Value:         strings.Trim(value, blank),
		Exclude:       !assigns,
		IgnoreFailure: assigns && dash,
	}, true
}

// systemdLine cuts the next line off. Line feed, carriage return and NUL end a line; different ones in a row end it
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

// procpsLine cuts the next line off at a line feed. A NUL ends the text of the line, as it ends a C string.
func procpsLine(data []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(data, []byte("\n"))
	line, _, _ = bytes.Cut(line, []byte{0})
	return line, rest
}
