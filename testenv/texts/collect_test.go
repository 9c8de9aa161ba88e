package texts

import (
	"slices"
	"strings"
	"testing"
)

// TestForms: the sample package has every form once.
func TestForms(t *testing.T) {
	t.Parallel()
	rooms, err := Collect(t.Context(), ".", "./testdata/sample")
	if err != nil {
		t.Fatal(err)
	}
	if len(rooms) != 1 || !strings.HasPrefix(rooms[0].About, "Package sample holds every form") {
		t.Fatalf("rooms %+v", rooms)
	}
	var got []string
	for _, text := range rooms[0].Texts {
		line := map[Role]string{Message: "message: ", Hint: "hint: ", Log: "log: ", Part: "part: "}[text.Role] + text.Text
		if text.Hint != "" {
			line += " -> " + text.Hint
		}
		if text.Secret != "" {
			line += " SECRET " + text.Secret
		}
		got = append(got, line)
	}
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(`
hint: look by the hint of a variable
hint: look by the remedy of a log
log: by standard error: …
log: by the log
log: by what has the form of a log
message: by a constant and a sum of … -> look at …
message: by a file of Windows
message: by a file of no platform of ours
message: by a format with "…" and 100% and …: …
message: by a format that is given on, with …
message: by a list: …
message: by a literal -> look by the hint of a literal
message: by a literal without keys -> look by its hint
message: by a named result
message: by a package variable
message: by a part: …
message: by a result -> look by the hint of a result
message: by a row of a table
message: by a text that grows
message: by a variable
message: by an argument of a closure
message: by an assignment -> look by the hint of an assignment
message: by an element of a table
message: "reveals " + string(secret.Reveal()) SECRET secret.Reveal()
message: carries: …
message: shows …
message: by another of many
message: by another value of the variable, … of them
message: by one of many
message: by the result of Error: …
part: ; by what is added to it
part: by a constant
part: by an element of a list, grown
part: secret SECRET secret
part: string(secret.Reveal()) SECRET secret.Reveal()
part: the part itself
`), "\n")
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("found and not expected: %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("not found: %s", line)
		}
	}
}
