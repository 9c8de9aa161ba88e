// Package directives edits configuration files that have one directive on each line, such as chrony.conf and ntp.conf.
package directives

import (
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

// mark precedes a line that a Timesync document turned off.
const mark = "#machineadm# "

// The lines around what a Timesync document owns in a file that it shares. Without an end there is no block.
const (
	begin = "# BEGIN machineadm"
	end   = "# END machineadm"
)

// split returns the lines of a file without its complete blocks: a merge of an administrator or of a package can double one.
func split(text []byte) []string {
	var lines []string
	from := -1
	for line := range strings.Lines(string(text)) {
		lines = append(lines, line)
		switch strings.TrimSpace(line) {
		case begin:
			from = len(lines) - 1
		case end:
			if from >= 0 {
				lines, from = lines[:from], -1
			}
		}
	}
	return lines
}

// Parse splits each directive of a file at its blanks, without comments and the block of Edit. The name of a directive
// is in lower case.
func Parse(text []byte) [][]string {
	var all [][]string
	for _, line := range split(text) {
		if words := settings.Words(line); len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

// Original returns a file as its other authors wrote it: without the block, and with the lines that Edit commented out.
func Original(text []byte) []byte { return Edit(text, func([]string) bool { return false }, "") }

// Edit comments out the directives for which off is true, so that they can be recognized, and restores directives of an earlier
// call for which it no longer is. Then it sets the block at the end of the file; an empty block is removed. Everything else
// stays unchanged.
func Edit(text []byte, off func(words []string) bool, block string) []byte {
	var out strings.Builder
	for _, line := range split(text) {
		original := strings.TrimPrefix(line, mark)
		switch words := settings.Words(original); {
		case len(words) == 0:
			out.WriteString(line)
		case off(words):
			out.WriteString(mark + original)
		default:
			out.WriteString(original)
		}
	}
	if block == "" {
		return []byte(out.String())
	}
	if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
		out.WriteByte('\n')
	}
	return []byte(out.String() + begin + "\n" + block + end + "\n")
}
