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
	tail []byte // at most twice tailBytes, so that it is seldom moved
	line []byte
	lost bool // the rest of an overlong line
}

// Write implements io.Writer. It never fails: a plugin must not end because of its words.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tail)+len(p) > 2*tailBytes {
		s.tail = append(s.tail[:0], last(s.tail, tailBytes)...)
	}
	s.tail = append(s.tail, last(p, tailBytes)...)
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
	level, message, fields := parseLine(s.line)
	var attributes []slog.Attr
	if len(fields) > 0 { // in a group: the plugin must not give the line another plugin's name or the host's words
		attributes = append(attributes, slog.GroupAttrs("fields", fields...))
	}
	if s.lost {
		attributes = append(attributes, slog.Bool("truncated", true))
	}
	if message != "" || len(attributes) > 0 {
		s.log.LogAttrs(context.Background(), level, message, attributes...)
	}
	s.line, s.lost = s.line[:0], false
}

// Flush logs a last line that was not ended. It is for a plugin that is gone.
func (s *stderr) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

// Tail is the end of what was written.
func (s *stderr) Tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ToValidUTF8(string(last(s.tail, tailBytes)), "\uFFFD")
}

func last(p []byte, n int) []byte { return p[max(0, len(p)-n):] }

// parseLine reads the JSON that go-plugin's convention has for a log line; any other text is a line of level info.
func parseLine(line []byte) (slog.Level, string, []slog.Attr) {
	text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r")
	record, ok := parseRecord(line)
	if !ok {
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

// parseRecord keeps numbers as they are written.
func parseRecord(line []byte) (map[string]any, bool) {
	if len(line) == 0 || line[0] != '{' || !json.Valid(line) {
		return nil, false
	}
	var record map[string]any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	err := decoder.Decode(&record)
	return record, err == nil
}
