package tomledit

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// composeArray builds an array of every layout, and a list to set it to.
func composeArray(layout, change []byte) (text []byte, want []any) {
	fillers := []string{"", " ", "\n", "\n  ", " # c\n", "\n# c\n\t", "\r\n", " # 'c', [\n\n# c\n "}
	values := []any{"a", "#]", int64(1), []any{int64(2), "b,"}, 1.5, map[string]any{"k": "}"}, true, ""}
	var b strings.Builder
	b.WriteString("x = 1\na = [")
	at := func(i int) string {
		if i >= len(layout) {
			return ""
		}
		return fillers[int(layout[i])%len(fillers)]
	}
	count := min(len(layout)/2, 8)
	for i := range count {
		value := values[int(layout[2*i]>>4)%len(values)]
		b.WriteString(at(2*i) + render(value, '\'') + at(2*i+1))
		if i+1 < count || layout[0]&8 != 0 {
			b.WriteByte(',')
		}
		switch op := change[i%len(change)]; op & 7 {
		case 0:
		case 1:
			want = append(want, "new", value)
		case 2:
			want = append(want, value, int64(op), "more")
		case 3:
			want = append(want, "other")
		default:
			want = append(want, value)
		}
	}
	b.WriteString(at(len(layout)-1) + "] # c\nb = 2\n")
	return []byte(b.String()), want
}

func checkArray(t *testing.T, layout, change []byte) {
	t.Helper()
	if len(change) == 0 || len(layout) == 0 {
		return
	}
	text, want := composeArray(layout, change)
	if want == nil {
		want = []any{}
	}
	after := checkSet(t, text, []string{"a"}, want)
	if comments(text) != comments(after)-bytes.Count(after, []byte(signature)) {
		t.Fatalf("comments are lost\nbefore:\n%s\nafter:\n%s", text, after)
	}
}

func comments(text []byte) int { return bytes.Count(text, []byte("# ")) }

func TestArrays(t *testing.T) {
	t.Parallel()
	for round := range 3000 {
		random := rand.New(rand.NewPCG(uint64(round), 2))
		layout, change := make([]byte, random.IntN(14)), make([]byte, 8)
		for _, list := range [][]byte{layout, change} {
			for i := range list {
				list[i] = byte(random.Uint32())
			}
		}
		checkArray(t, layout, change)
	}
}

func FuzzArray(f *testing.F) {
	f.Add([]byte("\x03\x10\x23\x00\x33\x02"), []byte("\x04\x00\x04"))
	f.Add([]byte("\x0b\x11\x24\x04\x35\x05\x02"), []byte("\x01\x02\x00\x03"))
	f.Fuzz(checkArray)
}
