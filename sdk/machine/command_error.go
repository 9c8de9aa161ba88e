package machine

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTailBytes bounds how much of a command's error output an error carries.
const maxTailBytes = 4 << 10

// ErrTimeout says that a command was killed because its own time was over. When the caller's context ended first,
// the error is the context's.
var ErrTimeout = errors.New("timed out")

// CommandError is a command that could not be started, failed or was ended. It never holds arguments, environment or
// input: those may be secrets.
type CommandError struct {
	// Name is the program, without directory.
	Name string
	// ExitCode is what the program returned; -1 when a signal ended it or it did not start.
	ExitCode int
	// Signal names the signal that ended the program, as signal(7) does without SIG, empty when none did.
	Signal string
	// Stderr is the end of its error output, at most 4 KiB, with control characters other than line feeds and tabs
	// escaped. It is another program's text, so Error leaves it out: show it to the administrator alone.
	Stderr string
	// Stdout is the end of its output, in the same form.
	Stdout string
	// Err is why the program was ended or did not start, nil when it failed by itself.
	Err error
}

// Error names the program and how it ended, in our own words only.
func (e *CommandError) Error() string {
	name := printable(e.Name)
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", name, e.Err)
	case e.Signal != "":
		return fmt.Sprintf("%s: ended by signal %s", name, e.Signal)
	default:
		return fmt.Sprintf("%s: exit code %d", name, e.ExitCode)
	}
}

func (e *CommandError) Unwrap() error { return e.Err }

// capture keeps the beginning of a stream, and its end for errors, and reads the rest so that the writer never waits.
type capture struct {
	head, tail []byte
	total      int
}

// Write never fails.
func (c *capture) Write(p []byte) (int, error) {
	c.total += len(p)
	c.head = append(c.head, p[:min(len(p), MaxOutputBytes-len(c.head))]...)
	c.tail = append(c.tail, p[max(0, len(p)-maxTailBytes):]...)
	c.tail = c.tail[max(0, len(c.tail)-maxTailBytes):]
	return len(p), nil
}

func (c *capture) cut() bool { return c.total > len(c.head) }

func (c *capture) end() string {
	text := printable(strings.TrimSpace(string(c.tail)))
	if len(text) <= maxTailBytes {
		return text
	}
	text = text[len(text)-maxTailBytes:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// printable escapes what could steer a terminal or reorder text: control characters except line feed and tab,
// formatting characters (the bidirectional ones among them), line separators and bytes that are not UTF-8.
func printable(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x100 && unicode.IsControl(r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
