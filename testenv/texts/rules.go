package texts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Judge says what is wrong with a text by the rules of the house; nothing when it is in order.
func Judge(t Text) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if t.Secret != "" {
		add("shows a secret: %s", t.Secret)
		return wrong
	}
	for _, text := range []string{t.Text, t.Hint} {
		for _, problem := range form(text) {
			add("%s", problem)
		}
	}
	switch t.Role {
	case Message, Log:
		wrong = append(wrong, beginning(t.Text)...)
	case Hint:
		wrong = append(wrong, instruction(t.Text)...)
	case Part:
	}
	if t.Hint != "" {
		wrong = append(wrong, instruction(t.Hint)...)
	}
	return wrong
}

// form is what holds for every text, a part of one included.
func form(text string) []string {
	var wrong []string
	if strings.Contains(strings.TrimSpace(text), "  ") {
		wrong = append(wrong, "has two blanks in a row")
	}
	if strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "..") || strings.HasSuffix(text, "!") {
		wrong = append(wrong, "ends like a sentence: a text has no full stop")
	}
	for word, better := range vocabulary() {
		if regexp.MustCompile(`(?i)(^|[^\w/.-])` + regexp.QuoteMeta(word) + `([^\w/.-]|\.? |\.?$)`).MatchString(text) {
			wrong = append(wrong, fmt.Sprintf("says %q: %s", word, better))
		}
	}
	filler := regexp.MustCompile(`(?i)\b(invalid|failed to|unable to|bad|illegal|an error|went wrong|unexpected)\b`)
	if found := filler.FindString(text); found != "" && !strings.Contains(text, ": ") && !strings.Contains(text, " because ") {
		wrong = append(wrong, fmt.Sprintf("says %q and no cause: say what is wrong", found))
	}
	slices.Sort(wrong)
	return wrong
}

// vocabulary: one word for one thing, and none for what helps nobody.
func vocabulary() map[string]string {
	return map[string]string{
		"symlink": "write link", "symbolic link": "write link", "folder": "write directory", "config file": "write stream, or name the file",
		"config": "write configuration", "hostname": "write host name", "filename": "write file name", "whitespace": "write white space",
		"e.g.": "write such as", "i.e.": "say it in words", "via": "write by or through", "please": "leave it out",
		"sorry": "leave it out", "just": "leave it out", "should": "write must, or the instruction itself",
		"can't": "write cannot", "don't": "write do not", "doesn't": "write does not", "isn't": "write is not", "won't": "write will not",
		"nil": "say what is missing", "struct": "that is a word of the code", "goroutine": "that is a word of the code",
		"unmarshal": "write decode", "marshal": "write encode", "stdin": "write standard input", "stdout": "write standard output",
		"stderr": "write standard error", "sudo": "write as root", "retry": "write try again or run again", "abort": "write end",
		"manifest": "write stream, or name the file", "yaml file": "write stream",
	}
}

// beginning: a message begins with a small letter, unless it begins with a name.
func beginning(text string) []string {
	word, _, _ := strings.Cut(text, " ")
	first := []rune(word)
	name := strings.ToUpper(word) == word || strings.ContainsAny(word, "/_.…") || len(first) > 1 && strings.ToLower(string(first[1:])) != string(first[1:])
	if len(first) > 0 && unicode.IsUpper(first[0]) && !name {
		return []string{"begins with a capital letter"}
	}
	if strings.TrimSpace(text) != text {
		return []string{"begins or ends with a blank"}
	}
	return nil
}

// instruction: a hint says what to do, so it begins with what to do, or is the command itself.
func instruction(text string) []string {
	if strings.HasPrefix(text, "did you mean ") && strings.HasSuffix(text, "?") {
		return nil
	}
	wrong := beginning(text)
	word, _, _ := strings.Cut(text, " ")
	if !slices.Contains(verbs(), strings.Trim(word, ",:;")) {
		wrong = append(wrong, fmt.Sprintf("begins with %q: a hint begins with what to do (a new verb goes into the list of the rules)", word))
	}
	return wrong
}

// verbs are the words that a hint may begin with: what a person can do, and the commands that are given whole.
func verbs() []string {
	return strings.Fields(`
		add allow ask begin boot change check choose clear close compare connect copy correct create decrease delete disable
		divide do enable end enter find fix follow free get give grant increase indent install join keep leave let list load
		look lower make mark mend mount move name open pass point put raise read reboot remove rename renew repeat replace
		report request rerun reset restart restore run save see set shorten show split start stop supply switch take tell
		test try turn unmount unset update upgrade use wait write
		chmod chown icacls machineadm systemctl`)
}
