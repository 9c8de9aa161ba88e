package reporting

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// sheet does what a terminal does that is wide enough and has no end.
type sheet struct {
	rows []string
	y    int
}

func (s *sheet) take(t *testing.T, sent string) {
	t.Helper()
	for part := range strings.SplitAfterSeq(sent, "\n") {
		text, ends := strings.CutSuffix(part, "\n")
		for len(s.rows) <= s.y+1 {
			s.rows = append(s.rows, "")
		}
		for _, token := range regexp.MustCompile("\r?\x1b\\[[0-9]*[AJK]|[^\r\x1b]+").FindAllString(text, -1) {
			n := 0
			switch _, err := fmt.Sscanf(token, "\r\x1b[%dA", &n); {
			case err == nil:
				s.y -= n
			case token == "\x1b[A":
				s.y--
			case token == "\x1b[K":
				s.rows[s.y] = ""
			case token == "\x1b[J":
				s.rows = append(s.rows[:s.y], "")
			case strings.HasPrefix(token, "\x1b"):
				t.Fatalf("%q is not known", token)
			default: // written over what is there
				s.rows[s.y] = token + s.rows[s.y][min(len(token), len(s.rows[s.y])):]
			}
		}
		if ends {
			s.y++
		}
	}
}

// TestWhatIsDrawnIsWhatIsThere draws regions of any height with lines of any length, and compares the screen with what
// should be on it.
func TestWhatIsDrawnIsWhatIsThere(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	var c canvas
	var s sheet
	above := ""
	for step := range 2000 {
		more, want := "", ""
		for range max(0, random.IntN(6)-3) {
			more += strings.Repeat("p", 1+random.IntN(30)) + fmt.Sprint(step) + "\n"
		}
		var live []line
		for range random.IntN(5) {
			text := strings.Repeat("l", 1+random.IntN(9))
			live, want = append(live, line{{text: text}}), want+text+"\n"
		}
		above += more
		sent := c.draw(more, live, false, 80+step/500)
		s.take(t, sent)
		if got := strings.TrimRight(strings.Join(s.rows, "\n"), "\n"); got != strings.TrimRight(above+want, "\n") {
			t.Fatalf("step %d: after %q the last lines are\n%s\nwant\n%s", step, sent, got[max(0, len(got)-300):], want)
		}
		if s.y != strings.Count(above+want, "\n") {
			t.Fatalf("step %d: the cursor is in row %d, want %d", step, s.y, strings.Count(above+want, "\n"))
		}
	}
}
