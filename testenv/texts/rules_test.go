package texts

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	message := func(text string) Text { return Text{Role: Message, Text: text} }
	hint := func(text string) Text { return Text{Role: Hint, Text: text} }
	for _, c := range []struct {
		text  Text
		wrong string // a word of what is wrong; empty when nothing is
	}{
		{message("the lock … is held"), ""},
		{message("…: …"), ""},
		{message("--path is missing: it names the stream's file"), ""},
		{message("UTF-16 is refused"), ""},
		{message("IsProcessInJob: …"), ""},
		{message("The lock is held"), "capital"},
		{message("the lock is held."), "full stop"},
		{message("the segments . and .."), ""},
		{message("the lock  is held"), "two blanks"},
		{message("the lock is held "), "blank"},
		{message("invalid value"), "no cause"},
		{message("failed to start"), "no cause"},
		{message("failed to start: …"), ""},
		{message("an error has occurred"), "no cause"},
		{message("the symlink … is broken"), "write link"},
		{message("config.yaml is missing"), ""},
		{message("the config is missing"), "write configuration"},
		{message("see the config."), "write configuration"},
		{message("the value should be a number"), "must"},
		{Text{Role: Message, Text: "the lock is held", Hint: "wait for it to end"}, ""},
		{Text{Role: Message, Text: "the lock is held", Hint: "it must end first"}, "what to do"},
		{hint("did you mean …?"), ""},
		{hint("chmod go-w …"), ""},
		{hint("wait: it goes on by itself"), ""},
		{hint("nothing can be done"), "what to do"},
		{hint("Wait"), "capital"},
		{Text{Role: Log, Text: "core dumps stay on"}, ""},
		{Text{Role: Log, Text: "Core dumps stay on"}, "capital"},
		{Text{Role: Part, Text: " and more"}, ""},
		{Text{Role: Part, Text: "the old  one"}, "two blanks"},
		{Text{Role: Message, Text: "the password is …", Secret: "spec.Password"}, "secret: spec.Password"},
	} {
		got := strings.Join(Judge(c.text), "; ")
		if (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
			t.Errorf("%q (hint %q): %q, want %q", c.text.Text, c.text.Hint, got, c.wrong)
		}
	}
}
