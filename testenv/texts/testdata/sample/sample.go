// Package sample holds every form in which a text comes to an error. Each form that must be found says so by its words.
package sample

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Secret must not be interpolated.
type Secret struct{ data []byte }

// Reveal opens it.
func (s Secret) Reveal() []byte { return s.data }

// Error has a message and a hint.
type Error struct {
	Message, Hint string
	Other         string
}

// Error puts a text together.
func (e *Error) Error() string {
	if e.Hint != "" {
		return "by the result of Error: " + e.Message
	}
	return e.Message
}

var errSentinel = errors.New("by a package variable")

const constant = "by a constant"

func forms(path string, n int, secret Secret) error {
	local := "by a variable"
	if n > 1 {
		local = fmt.Sprintf("by another value of the variable, %d of them", n)
	}
	hint := ""
	if n > 2 {
		hint = "look by the hint of a variable"
	}
	switch n {
	case 0:
		return fmt.Errorf("by a format with %q and 100%% and %-5d: %w", path, n, errSentinel)
	case 1:
		return &Error{Message: "by a literal", Hint: "look by the hint of a literal", Other: "not by another field"}
	case 2:
		return &Error{"by a literal without keys", "look by its hint", "not by its other field"}
	case 3:
		return build(local, hint)
	case 4:
		return build(constant+" and a sum of "+path, "look at "+path)
	case 5:
		return errors.New(chosen("by one of many", "by another of many"))
	case 6:
		e := &Error{}
		e.Message, e.Hint = "by an assignment", "look by the hint of an assignment"
		return e
	case 7:
		closure := func(message string) error { return &Error{Message: message} }
		return closure("by an argument of a closure")
	case 8:
		m, h := judged(n)
		return build(m, h)
	case 9:
		text := "by a text that grows"
		text += "; by what is added to it"
		return errors.New(text)
	case 10:
		return errors.New(map[bool]string{true: "by an element of a table"}[n > 0])
	case 11:
		for _, c := range []struct{ message string }{{"by a row of a table"}} {
			return errors.New(c.message)
		}
	case 12:
		return errors.New("reveals " + string(secret.Reveal()))
	case 13:
		return fmt.Errorf("shows %v", secret)
	case 14:
		text := string(secret.Reveal())
		return errors.New("carries: " + strings.TrimSpace(text))
	case 15:
		return errors.New("by a part: " + part(n))
	case 16:
		return complain("by a format that is given on, with %d", n)
	}
	var several []string
	several = append(several, "by an element of a list, grown")
	return errors.New("by a list: " + strings.Join(several, "; "))
}

func complain(format string, args ...any) error { return errors.New(fmt.Sprintf(format, args...)) }

func part(int) string { return "the part itself" }

func judged(n int) (message, hint string) {
	if n > 0 {
		return "by a result", "look by the hint of a result"
	}
	message = "by a named result"
	return
}

func build(message, hint string) error { return &Error{Message: message, Hint: hint} }

func chosen(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func said(stderr io.Writer, log interface{ Warn(string, ...any) }) {
	slog.Error("by the log", "error", errSentinel)
	log.Warn("by what has the form of a log", "remedy", "look by the remedy of a log")
	_, _ = fmt.Fprintf(stderr, "by standard error: %s\n", constant)
	panic("not by a panic")
}
