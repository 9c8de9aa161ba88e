package outcome

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxCause bounds the line of a program in the first line of a status, in characters.
const maxCause = 200

// LastError returns the line of a log that says why its program ended: the last one in the form of an error; or that of systemd, if it
// did not start or killed the program; or the last one of the program, or of the log. What the container runtime, journald and klog write
// before a message is left out.
func LastError(log string) string {
	before := regexp.MustCompile(`^\S+ (?:(?:stdout|stderr) [FP]|\S+ (\S+)\[\d+\]:) `)
	cause := regexp.MustCompile(`Failed to (?:load|run|set up|execute)|killed|dumped|timed out`)
	var end, program, last string
	earlier := false // than the last start that has left more than systemd's usual lines
	for _, line := range slices.Backward(strings.Split(log, "\n")) {
		head := before.FindStringSubmatch(line)
		text, failed := message(before.ReplaceAllString(line, ""))
		switch last = cmp.Or(last, text); {
		case failed:
			return short(text)
		case earlier:
		case head == nil || head[1] != "systemd":
			program = cmp.Or(program, text)
		case cause.MatchString(text):
			end = text // the first that it writes of an end has the most
		case strings.Contains(text, ": Failed with result "):
			last = text // and not what it writes of the next start
		case strings.HasPrefix(text, "Started "):
			earlier = cmp.Or(end, program) != ""
		}
	}
	return short(cmp.Or(end, program, last))
}

// OfKubelet returns the lines of the kubelet's journal that can explain a failure: all of a kubelet that ends, or that kubeadm
// waits for alone; else those about pods that it cannot start, because a kubelet without an API server logs many other errors.
func OfKubelet(journal string, alone bool) string {
	if alone || strings.Contains(journal, "Main process exited") {
		return journal
	}
	var kept strings.Builder
	for line := range strings.Lines(journal) {
		if strings.Contains(line, `"Error syncing pod`) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// message returns the message of a line in the format of klog or of etcd, or else the line; failed means that it is an error.
func message(line string) (text string, failed bool) {
	line = strings.TrimSpace(line)
	if header := regexp.MustCompile(`^([IWEF])\d{4} \S+ +\d+ \S+\] (.*)`).FindStringSubmatch(line); header != nil {
		failed, line = header[1] == "E" || header[1] == "F", header[2]
		const quoted = `("(?:[^"\\]|\\.)*")`
		if parts := regexp.MustCompile(`^` + quoted + `(?: err=` + quoted + `)?`).FindStringSubmatch(line); parts != nil {
			what, err := strconv.Unquote(parts[1])
			why, _ := strconv.Unquote(parts[2]) // empty without an error
			if err == nil {
				line = joined(what, cmp.Or(why, strings.TrimSpace(line[len(parts[0]):])))
			}
		}
		return line, failed
	}
	var entry struct{ Level, Msg, Error string }
	if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg != "" {
		return joined(entry.Msg, entry.Error), entry.Error != "" || slices.Contains([]string{"error", "panic", "fatal"}, entry.Level)
	}
	const plain = `^(?i:error|panic|fatal)\b|^flag provided but not defined|^invalid (?:boolean )?value .* for flag` // a usage follows
	return line, regexp.MustCompile(plain).MatchString(line)
}

func joined(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// short makes a text one line and bounds it. The end of a long error has the cause, its beginning what was done.
func short(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if all := []rune(text); len(all) > maxCause {
		return strings.TrimSpace(string(all[:maxCause/4])) + " ... " + strings.TrimSpace(string(all[len(all)-maxCause*3/4:]))
	}
	return text
}

// cause returns the line of kubeadm's output that says why it failed: the first check, or the error without its phase.
func (o *Output) cause(text string) string {
	if check := regexp.MustCompile(`(?m)^\s*\[ERROR [\w.-]+\]: (.*)$`).FindStringSubmatch(text); check != nil {
		return short(check[1])
	}
	begins := regexp.MustCompile(`(?m)^(?:error: )?error(?: execution (?:run condition for )?phase [a-z0-9/-]+)?: *`)
	at := begins.FindAllStringIndex(text, -1)
	if at == nil {
		return ""
	}
	rest := strings.TrimSpace(text[at[len(at)-1][1]:])
	rest = strings.TrimPrefix(rest, "[preflight] Some fatal errors occurred:\n")
	line, _, _ := strings.Cut(rest, "\n")
	line, _, _ = strings.Cut(line, "[preflight] ") // 1.30 leaves out a line feed
	return short(line)
}
