package tomledit

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

// compose builds a document of fragments that meet in every way: an arbitrary text is rarely TOML. What does not fit is
// left out.
func compose(script []byte) []byte {
	fragments := []string{
		"", "", "# c\n", "  # a = 1\n", "#[d]\n", " \t\n", "\n",
		"[a]\n", "[a.b]\n", "[ a . \"b\".c ]\n", "  [a.c] # c\n", "[d]\n", "\t[d.'x.y']\n", "[a.b.d]\n", "[[a.l]]\n", "[[l]]\n", "[l.a]\n",
		"[a.b] # machineadm\n",
		"a = 1\n", "b = 'x' # c\n", "  c=\"\"\"\n[a]\n\"\"\"\n", "k = 1 # machineadm\n", "k = 2 # c # machineadm: changed\n",
		"b.c = 1\n", "  b.\"x.y\".z = true  \n", "a.b.c = 0x10\n", "a.b.d = []\n", "d.k = {}\n",
		"a = {}\n", "b = { }\n", "c = {a = 1}\n", "d = { a.b = 1, c = { d = [ {} ] } , e = 2 }# c\n", "x = {k = 1, l = 2} # machineadm: added k, changed l\n",
		"k = { a = [\n1, # c\n2\n], b = 1 }\n", "a = [\n  1,\n  \"b\", # c\n\n  [ 2, 3 ]\n  # d\n]\n", "b = [ # c\n 'x', 'y' # d\n , 1.5\n ,]\n",
		"l = [{a = 1}, {b = 2}]\n", "k = [\n] # c\n", "l.k = [[\n'#'],\n]\n",
	}
	var text []byte
	for i, b := range script {
		if i > 24 {
			break
		}
		longer := append(bytes.Clone(text), fragments[int(b)%len(fragments)]...)
		if toml.Unmarshal(longer, &map[string]any{}) == nil {
			text = longer
		}
	}
	if len(script) > 0 && script[0]&64 != 0 {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if len(script) > 0 && script[0]&128 != 0 {
		text = bytes.TrimRight(text, "\r\n")
	}
	return text
}

// checkComposed makes edits in a row in a document, and holds each against what is promised.
func checkComposed(t *testing.T, data, script []byte) {
	t.Helper()
	names := []string{"", "a", "b", "k", "k/l", "x.y", "b/x.y", "a b/#,", "c/d/", "l"}
	clean := !stale(parsed(t, data))
	for len(script) >= 3 {
		path := pick(parsed(t, data), int(script[1]), names[int(script[2])%len(names)])
		value := wanted(int(script[0]), "v")
		if list, ok := must(parsed(t, data).Get(path...)).([]any); ok && script[0]&32 != 0 {
			value = shuffled(list, int(script[0])*7, "v")
		}
		if script[0]&16 != 0 {
			data = checkDelete(t, data, path)
		} else {
			data = checkSet(t, data, path, value)
		}
		if clean && stale(parsed(t, data)) {
			t.Fatalf("a mark is left that nothing answers to:\n%s", data)
		}
		script = script[3:]
	}
}

func TestComposed(t *testing.T) {
	t.Parallel()
	for round := range 600 {
		random := rand.New(rand.NewPCG(uint64(round), 1))
		script := make([]byte, 48)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		checkComposed(t, compose(script[:random.IntN(25)]), script[24:])
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

func FuzzComposed(f *testing.F) {
	f.Add([]byte("\x07\x13\x08\x18\x09\x1a\x1c\x24"), []byte("\x00\x00\x01\x01\x02\x07\x12\x03\x00"))
	f.Add([]byte("\x1d\x1e\x20\x23\x24\x0b\x19\x0e\x13"), []byte("\x28\x02\x00\x24\x03\x05\x30\x04\x00\x08\x01\x06"))
	f.Add([]byte("\xc2\x02\x06\x03\x04\x0b\x13\x06\x02\x09\x13"), []byte("\x07\x00\x03\x00\x00\x03\x10\x01\x00"))
	f.Fuzz(func(t *testing.T, fragments, script []byte) {
		checkComposed(t, compose(fragments), script[:min(len(script), 36)])
	})
}
