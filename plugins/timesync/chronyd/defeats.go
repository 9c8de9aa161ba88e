package main

import (
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// defeats returns a function that reports whether a line of another author defeats the document. It refuses files that cannot
// be edited and defeat it.
func (c *configuration) defeats(own string, want settings.Settings) (func(words []string) bool, error) {
	line := manual().Defeats(own, want)
	volatile := func(directory string) bool { return !editable(directory) }
	defeats := func(words []string) bool {
		directories, _ := includes(words)
		return line(words) || want.ReplacesSources() && slices.ContainsFunc(directories, volatile)
	}
	for i, f := range c.files {
		for _, words := range directives.Parse(directives.Original(f.text)) {
			text := strings.Join(words, " ")
			switch other := opposite(words, own); {
			case other != "":
				return nil, sdk.Precondition(f.path+" has the line \""+text+"\", and the document has \""+other+"\", of which the last one counts",
					"remove one of the two, then run again")
			// A document with sources turns off the line that includes the file.
			case f.volatile && !want.ReplacesSources() && i >= c.before && c.dropIns != "" && line(words):
				return nil, sdk.Precondition(f.path+" has the line \""+text+"\", which chronyd uses instead of the document's",
					"remove that line, or that which includes the file, then run again")
			}
		}
	}
	return defeats, nil
}

// maxDistance returns the root distance beyond which chronyd ignores a server: the document's, else another file's.
func (c *configuration) maxDistance(own string, off func(words []string) bool) time.Duration {
	distance := float64(defaultMaxDistance)
	read := func(text []byte) {
		for _, words := range directives.Parse(text) {
			if words[0] == "maxdistance" && len(words) > 1 && !off(words) {
				distance = directives.Number(words[1], distance)
			}
		}
	}
	for _, f := range c.files {
		read(directives.Original(f.text))
	}
	off = func([]string) bool { return false }
	read([]byte(own))
	return time.Duration(distance * float64(time.Second))
}

// opposite returns the line of the document that decides the reverse about the same clients as a line of another author, or
// about some of them if that line is about all.
func opposite(words []string, own string) string {
	reverse := map[string]string{"allow": "deny", "deny": "allow", "cmdallow": "cmddeny", "cmddeny": "cmdallow"}[words[0]]
	for _, line := range directives.Parse([]byte(own)) {
		if reverse != "" && line[0] == reverse && (slices.Contains(words, "all") || slices.Equal(words[1:], line[1:])) {
			return strings.Join(line, " ")
		}
	}
	return ""
}
