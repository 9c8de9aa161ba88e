package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// logged is a stderr whose log ends up in the buffer, one JSON object on a line, without times.
func logged() (*stderr, *bytes.Buffer) {
	var out bytes.Buffer
	handler := slog.NewJSONHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	return &stderr{log: slog.New(handler).With(slog.String("plugin", "p"))}, &out
}

func say(t *testing.T, s *stderr, chunks ...string) {
	t.Helper()
	for _, chunk := range chunks {
		if n, err := s.Write([]byte(chunk)); n != len(chunk) || err != nil {
			t.Fatalf("%d of %d bytes were taken (%v)", n, len(chunk), err)
		}
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	const info = `{"level":"INFO","msg":"%s","plugin":"p"}` + "\n"
	plain := func(lines ...string) (out string) {
		for _, line := range lines {
			out += fmt.Sprintf(info, line)
		}
		return out
	}
	for name, tt := range map[string]struct {
		chunks []string
		want   string
	}{
		"nothing":                  {nil, ""},
		"plain text":               {[]string{"one\ntwo\n"}, plain("one", "two")},
		"in pieces":                {[]string{"o", "n", "e\nt", "", "wo\n"}, plain("one", "two")},
		"the last is not ended":    {[]string{"one\n", "panic: lost?"}, plain("one", "panic: lost?")},
		"empty lines":              {[]string{"\n\none\n\n"}, plain("one")},
		"Windows' line ends":       {[]string{"one\r\ntwo\r", "\n"}, plain("one", "two")},
		"not UTF-8":                {[]string{"a\xffb\n"}, plain("a\ufffdb")},
		"a character in two parts": {[]string{"\xc3", "\xa4\n"}, plain("ä")},
		"control characters":       {[]string{"\x1b[31mred\x00\n"}, plain(`\u001b[31mred\u0000`)},
		"levels": {[]string{
			`{"@level":"trace","@message":"a"}` + "\n", `{"@level":"debug","@message":"b"}` + "\n",
			`{"@level":"info","@message":"c"}` + "\n", `{"@level":"warn","@message":"d"}` + "\n",
			`{"@level":"error","@message":"e"}` + "\r\n", `{"@level":"ERROR","@message":"f"}` + "\n",
			`{"@level":7,"@message":"g"}` + "\n", `{"@message":"h"}`,
		}, `{"level":"DEBUG","msg":"a","plugin":"p"}
{"level":"DEBUG","msg":"b","plugin":"p"}
{"level":"INFO","msg":"c","plugin":"p"}
{"level":"WARN","msg":"d","plugin":"p"}
{"level":"ERROR","msg":"e","plugin":"p"}
{"level":"ERROR","msg":"f","plugin":"p"}
{"level":"INFO","msg":"g","plugin":"p"}
{"level":"INFO","msg":"h","plugin":"p"}
`},
		"fields": {[]string{
			`{"@level":"warn","@message":"slow","@module":"m","@timestamp":"2026-03-01T03:04:05Z","n":1234567890123456789,"b":[1,{"c":null}],"a":"x y"}` + "\n",
		}, `{"level":"WARN","msg":"slow","plugin":"p","fields":{"a":"x y","b":[1,{"c":null}],"n":1234567890123456789}}` + "\n"},
		"fields without a message": {[]string{`{"@message":"","a":1}` + "\n"}, `{"level":"INFO","msg":"","plugin":"p","fields":{"a":1}}` + "\n"},
		"fields that forge": {
			[]string{`{"@message":"m","plugin":"another","level":"ERROR","msg":"forged","time":"never","truncated":true}` + "\n"},
			`{"level":"INFO","msg":"m","plugin":"p","fields":{"level":"ERROR","msg":"forged","plugin":"another","time":"never","truncated":true}}` + "\n",
		},
		"a message of two lines": {[]string{`{"@message":"one\ntwo"}` + "\n"}, plain(`one\ntwo`)},
		"JSON that is no log line": {
			[]string{"{\"a\":1}\n", "{}\n", "[1]\n", "{\"@message\":7}\n", "{\"@message\":\"a\"} b\n", "{broken\n", "null\n"},
			plain(`{\"a\":1}`, "{}", "[1]", `{\"@message\":7}`, `{\"@message\":\"a\"} b`, "{broken", "null"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := logged()
			say(t, s, tt.chunks...)
			s.Flush()
			s.Flush() // once more says nothing
			if out.String() != tt.want {
				t.Errorf("logged\n%s\nwant\n%s", out, tt.want)
			}
			if want := strings.ToValidUTF8(strings.Join(tt.chunks, ""), "\ufffd"); s.Tail() != want {
				t.Errorf("the tail is %q, want %q", s.Tail(), want)
			}
		})
	}
}

func TestALineIsLoggedWhenItEnds(t *testing.T) {
	t.Parallel()
	s, out := logged()
	say(t, s, "half a line")
	if out.Len() > 0 {
		t.Errorf("logged %s", out)
	}
	say(t, s, ", whole\nnext")
	if got := strings.Count(out.String(), "\n"); got != 1 || !strings.Contains(out.String(), "half a line, whole") {
		t.Errorf("logged %s", out)
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	type line struct {
		Msg       string `json:"msg"`
		Truncated bool   `json:"truncated"`
	}
	for name, chunk := range map[string]int{"at once": 1 << 20, "in pieces": 1000, "byte by byte": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, out := logged()
			text := strings.Repeat("x", lineBytes) + "\n" + strings.Repeat("y", lineBytes+1) + "\n" + strings.Repeat("z", 3*lineBytes) + "\nend\n"
			for len(text) > 0 {
				n := min(chunk, len(text))
				say(t, s, text[:n])
				text = text[n:]
			}
			want := []line{
				{Msg: strings.Repeat("x", lineBytes)},
				{strings.Repeat("y", lineBytes), true},
				{strings.Repeat("z", lineBytes), true},
				{Msg: "end"},
			}
			for i, text := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
				var got line
				if err := json.Unmarshal([]byte(text), &got); err != nil {
					t.Fatal(err)
				}
				if i >= len(want) || got != want[i] {
					t.Errorf("line %d has %d bytes, truncated: %v", i, len(got.Msg), got.Truncated)
				}
			}
		})
	}
}

func TestTailIsBounded(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string][]int{
		"just full":     {tailBytes},
		"one more":      {tailBytes, 1},
		"small ones":    {1000, 1000, 1000},
		"many":          make([]int, 5000),
		"one huge one":  {5 << 20},
		"after another": {10, 5 << 20, 10},
		"twice full":    {tailBytes, tailBytes, 1, tailBytes - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := logged()
			var all []byte
			for i, size := range sizes {
				if size == 0 {
					size = 97
				}
				chunk := bytes.Repeat([]byte{byte('a' + i%26)}, size)
				all = append(all, chunk...)
				say(t, s, string(chunk))
			}
			want := string(all[max(0, len(all)-tailBytes):])
			if got := s.Tail(); got != want {
				t.Errorf("the tail has %d bytes, want the last %d", len(got), len(want))
			}
			if cap(s.tail) > 4*tailBytes || cap(s.line) > 2*lineBytes {
				t.Errorf("%d and %d bytes are held", cap(s.tail), cap(s.line))
			}
		})
	}
	s, _ := logged()
	say(t, s, strings.Repeat("ä", tailBytes)+"a")
	if got := s.Tail(); !utf8.ValidString(got) || !strings.HasSuffix(got, "äa") {
		t.Errorf("a character was cut: %q", got[:8])
	}
}

// TestConcurrentWriters: go-plugin writes a plugin's stderr and its redirected streams side by side.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	s, out := logged()
	const writers, lines = 4, 200
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			for i := range lines {
				if _, err := fmt.Fprintf(s, "writer %d line %d\n", w, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Go(func() {
		for range lines {
			s.Tail()
			s.Flush()
		}
	})
	wait.Wait()
	for w := range writers {
		for i := range lines {
			if !strings.Contains(out.String(), fmt.Sprintf(`"writer %d line %d"`, w, i)) {
				t.Fatalf("line %d of writer %d is missing", i, w)
			}
		}
	}
	if got := strings.Count(s.Tail(), "\n"); got != writers*lines {
		t.Errorf("the tail has %d lines", got)
	}
}

func TestTextLogCannotBeForged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &stderr{log: slog.New(slog.NewTextHandler(&out, nil)).With(slog.String("plugin", "p"))}
	say(t, s, `{"@message":"m\nlevel=ERROR msg=forged","k\n=":"v\nlevel=ERROR","b":"\u202e\u001b[1A"}`+"\n", "level=ERROR\x1b[1A msg=forged\r\n")
	if strings.Count(out.String(), "\n") != 2 || strings.ContainsAny(out.String(), "\x1b\r\u202e") || strings.Contains(out.String(), " level=ERROR") {
		t.Errorf("logged %q", out.String())
	}
}

func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{"", "plain", "{", `{"@message":"a","@level":"warn","b":{"c":[1e400]}}`, "\xff", "{}\r", `{"@message":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		level, message, fields := parseLine(line)
		if !utf8.ValidString(message) {
			t.Errorf("%q has the message %q", line, message)
		}
		if level < slog.LevelDebug || level > slog.LevelError {
			t.Errorf("%q has the level %v", line, level)
		}
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).LogAttrs(context.Background(), slog.LevelError, message, slog.GroupAttrs("fields", fields...))
		if !json.Valid(out.Bytes()) || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
			t.Errorf("%q is logged as %q", line, out.String())
		}
	})
}
