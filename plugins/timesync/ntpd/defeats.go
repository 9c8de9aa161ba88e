package main

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// defeats returns a function that reports whether a line of another author defeats the document. It refuses lines that say
// more than that, that bar ntpd from its sources, and that ntpd reads after the document's.
func (c *configuration) defeats(own string, want settings.Settings) (func(words []string) bool, error) {
	line := manual().Defeats("", want)
	defeats := func(words []string) bool {
		outside := words[0] == "includefile" && path.IsAbs(target(words)) && !editable(target(words))
		return line(words) || want.ReplacesSources() && outside
	}
	for _, f := range c.files {
		last := c.dropIns != "" && path.Dir(f.Path) == c.dropIns && path.Base(f.Path) > ownName
		for _, words := range directives.Parse(directives.Original(f.Text)) {
			refuse := func(message, hint string) error {
				return sdk.Precondition(f.Path+" has the line \""+strings.Join(words, " ")+"\", "+message, hint+", then run again")
			}
			if rest := more(words, want); rest != "" && line(words) {
				return nil, refuse("which defeats the document and says more than that: "+rest, "write the rest as a line of its own")
			}
			if last && !defeats(words) && overrides(words, own) {
				return nil, refuse("which ntpd reads after "+path.Join(c.dropIns, ownName), "remove it, or rename the file so that it sorts before "+ownName)
			}
			if want.HasSources() && c.blocks(words, want, own) {
				return nil, refuse("with which ntpd gets no answer of the servers of the document",
					"remove it, or add \"restrict source nomodify noquery\" or \"interface listen NAME\" to providerConfig.directives")
			}
		}
	}
	for _, l := range want.Lines {
		if words := l.Words(); len(words) > 0 && want.HasSources() && c.blocks(words, want, own) {
			return nil, sdk.InvalidConfig(sdk.Violation{
				Field: string(l.Field), Message: "keeps ntpd from an answer of the servers of the document",
				Hint: "remove it, or add \"restrict source nomodify noquery\" or \"interface listen NAME\" to providerConfig.directives",
			})
		}
	}
	return defeats, nil
}

// maxDistance returns the root distance beyond which ntpd ignores a server: the document's, else another file's.
func (c *configuration) maxDistance(own string, off func(words []string) bool) time.Duration {
	distance := defaultMaxDistance
	read := func(text []byte) {
		for _, words := range directives.Parse(text) {
			if words[0] == "tos" && !off(words) {
				options(words, func(option string, value float64) {
					if option == "maxdist" {
						distance = value
					}
				})
			}
		}
	}
	for _, f := range c.files {
		read(directives.Original(f.Text))
	}
	off = func([]string) bool { return false }
	read([]byte(own))
	return time.Duration(distance * float64(time.Second))
}

// overrides reports whether a line sets what a line of the document sets: the same directive, or the same option of one with options.
func overrides(words []string, own string) bool {
	perOption := slices.Contains([]string{"tos", "tinker", "mru", "limit", "discard", "rlimit"}, words[0])
	return slices.ContainsFunc(directives.Parse([]byte(own)), func(o []string) bool {
		same := false
		for i := 1; i < len(o) && perOption; i += 2 {
			same = same || slices.Contains(words[1:], o[i])
		}
		return o[0] == words[0] && (same || manual()[words[0]].Value)
	})
}

// blocks reports whether a line keeps ntpd from its servers: it ignores everything, or every server of the document, and no line
// excepts the sources or the machine's interfaces.
func (c *configuration) blocks(words []string, want settings.Settings, own string) bool {
	has := func(option string) bool { return slices.Contains(words[1:], option) }
	excepts := func(name string, options ...string) bool {
		all := directives.Parse([]byte(own))
		for _, f := range c.files {
			all = append(all, directives.Parse(f.Text)...)
		}
		return slices.ContainsFunc(all, func(w []string) bool {
			return w[0] == name && len(w) > 1 && slices.Contains(options, w[1]) && !isLoopback(w[len(w)-1])
		})
	}
	switch words[0] {
	case "restrict":
		ignores := has("ignore") || has("notrust") && slices.ContainsFunc(want.Sources, func(s settings.Source) bool { return !s.Authenticated() })
		named := slices.ContainsFunc(want.Sources, func(s settings.Source) bool { return has(s.Address) })
		return ignores && (named || has("default") && !excepts("restrict", "source") && !restricts(own))
	case "interface", "nic":
		return (has("ignore") || has("drop")) && has("all") && !excepts("interface", "listen") && !excepts("nic", "listen")
	}
	return false
}

// restricts reports whether a line of the document says what a host may do, which precedes the default.
func restricts(own string) bool {
	return slices.ContainsFunc(directives.Parse([]byte(own)), func(w []string) bool {
		return w[0] == "restrict" && len(w) > 1 && !isLoopback(w[1]) && !slices.Contains(w, "default")
	})
}

func isLoopback(name string) bool { return slices.Contains([]string{"127.0.0.1", "::1", "lo"}, name) }
