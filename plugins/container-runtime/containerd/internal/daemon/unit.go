package daemon

import (
	"errors"
	"io/fs"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// launch is how the unit starts the daemon.
type launch struct {
	binary string // as the unit names it
	config string // of --config, empty without one
}

func expand(word string, environment []string) string {
	for _, assignment := range environment {
		name, value, _ := strings.Cut(assignment, "=")
		word = strings.ReplaceAll(word, "${"+name+"}", value)
		if word == "$"+name {
			word = value
		}
	}
	return word
}

// launchOf reads the command line of a unit. It skips a wrapper such as env, and expands variables of the unit's own
// Environment=. Source: systemd.service(5).
func launchOf(argv, environment []string) launch {
	var l launch
	for i := 0; i < len(argv); i++ {
		word := argv[i]
		if i == 0 {
			word = strings.TrimLeft(word, "@-:+!|")
		}
		word = expand(word, environment)
		name, value, joined := strings.Cut(word, "=")
		switch {
		case l.binary == "" && strings.HasPrefix(word[strings.LastIndexAny(word, `/\`)+1:], "containerd"):
			l.binary = word
		case l.binary == "" || name != "--config" && name != "-c" && name != "-config":
		case joined:
			l.config = value
		case i+1 < len(argv):
			i++
			l.config = expand(argv[i], environment)
		}
	}
	return l
}

// words divides a line as systemd does, as far as a command line of containerd needs it: quotes join words.
func words(line string) []string {
	all := regexp.MustCompile(`(?:[^ \t"']|"[^"]*(?:"|$)|'[^']*(?:'|$))+`).FindAllString(line, -1)
	for i, word := range all {
		all[i] = regexp.MustCompile(`"([^"]*)"?|'([^']*)'?`).ReplaceAllString(word, "$1$2")
	}
	return all
}

// unitDirectories is where systemd looks for units. The first one wins. Source: systemd.unit(5).
func unitDirectories() []string {
	return []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
}

// hasUnitFile reports whether one of the directories has the unit. A link to nowhere masks it.
func hasUnitFile(m sdk.Machine) bool {
	return slices.ContainsFunc(unitDirectories(), func(directory string) bool {
		info, err := m.FS.Stat(directory + "/" + settings.Unit)
		return err == nil && info.Mode.IsRegular()
	})
}

// assignments returns the keys and values in the section Service of a file of a unit.
func assignments(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		section := ""
		for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				section = line
			}
			key, value, ok := strings.Cut(line, "=")
			if ok && section == "[Service]" && !yield(strings.TrimSpace(key), strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// readService reads one file of a unit on top of the files before it: an empty assignment clears.
func readService(text string, argv, environment []string) (args, env []string) {
	for key, value := range assignments(text) {
		switch list := words(value); key {
		case "ExecStart":
			argv = list
		case "Environment":
			if len(list) == 0 {
				environment = nil
			}
			environment = append(environment, list...)
		}
	}
	return argv, environment
}

// dropIns returns the drop-ins of the unit in the order in which systemd reads them: by name, whatever the directory.
func dropIns(m sdk.Machine) (files []string, err error) {
	byName := map[string]string{}
	for _, kind := range []string{"service.d", settings.Unit + ".d"} { // a drop-in of the unit hides one of all services with its name
		for _, directory := range slices.Backward(unitDirectories()) {
			at := directory + "/" + kind
			names, err := m.FS.ReadDir(at)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, name := range names {
				if strings.HasSuffix(name, ".conf") {
					byName[name] = at + "/" + name
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		files = append(files, byName[name])
	}
	return files, nil
}

// launchInImage reads the unit file of an image and its drop-ins in their order.
func launchInImage(m sdk.Machine, fragment string) (launch, error) {
	after, err := dropIns(m)
	if err != nil {
		return launch{}, err
	}
	var argv, environment []string
	for _, file := range slices.Concat([]string{fragment}, after) {
		text, err := m.FS.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) { // systemd ignores a link to nowhere, too
			continue
		}
		if err != nil {
			return launch{}, err
		}
		argv, environment = readService(string(text), argv, environment)
	}
	return launchOf(argv, environment), nil
}
