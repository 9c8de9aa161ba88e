package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
)

const (
	tailBytes = 64 << 10 // what is kept of a plugin's stderr, for details.json
	lineBytes = 8 << 10  // what one line of a log shows
)

// stderr takes what a plugin writes to its stderr: the tail is kept for details.json, each line goes to the host's
// log under the plugin's name, bounded. Escaping is the log handler's.
type stderr struct {
	log *slog.Logger

	mu   sync.Mutex
	tail []byte
	line []byte
	lost bool // the rest of an overlong line
}

// Write implements io.Writer. It never fails: a plugin must not end because of its words.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tail = append(s.tail, p...)
	if over := len(s.tail) - tailBytes; over > 0 {
		s.tail = append(s.tail[:0], s.tail[over:]...)
	}
	for rest := p; len(rest) > 0; {
		text, after, complete := bytes.Cut(rest, []byte{'\n'})
		s.take(text)
		if complete {
			s.flush()
		}
		rest = after
	}
	return len(p), nil
}

func (s *stderr) take(text []byte) {
	room := lineBytes - len(s.line)
	if len(text) > room {
		text, s.lost = text[:room], true
	}
	s.line = append(s.line, text...)
}

func (s *stderr) flush() {
	level, message, attributes := parseLine(s.line)
	if s.lost {
		attributes = append(attributes, slog.Bool("truncated", true))
	}
	if message != "" {
		s.log.LogAttrs(context.Background(), level, message, attributes...)
	}
	s.line, s.lost = s.line[:0], false
}

// Tail is the end of what was written.
func (s *stderr) Tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ToValidUTF8(string(s.tail), "\uFFFD")
}

// parseLine reads the JSON that go-plugin's convention has for a log line; any other text is a line of level info.
func parseLine(line []byte) (slog.Level, string, []slog.Attr) {
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r")
	var record map[string]any
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &record) != nil {
		return slog.LevelInfo, text, nil
	}
	message, ok := record["@message"].(string)
	if !ok {
		return slog.LevelInfo, text, nil
	}
	level := slog.LevelInfo
	switch name, _ := record["@level"].(string); strings.ToLower(name) {
	case "trace", "debug":
		level = slog.LevelDebug
	case "warn":
		level = slog.LevelWarn
	case "error":
		level = slog.LevelError
	}
	var attributes []slog.Attr
	for _, key := range sortedKeys(record) {
		if !strings.HasPrefix(key, "@") {
			attributes = append(attributes, slog.Any(key, record[key]))
		}
	}
	return level, message, attributes
}
