package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

const (
	tailBytes = 64 << 10 // the end of the stderr that details.json keeps
	lineBytes = 8 << 10  // the longest line in the log
)

// stderr receives the stderr of a plugin. It keeps the tail for details.json and logs each line, bounded. The log
// handler escapes.
type stderr struct {
	log *slog.Logger

	mu   sync.Mutex
	tail []byte // at most twice tailBytes, which makes moves rare
	line []byte
	lost bool // line is truncated
}

// Write implements io.Writer. It never fails, because a failure would end the plugin.
func (s *stderr) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tail)+len(p) > 2*tailBytes {
		s.tail = append(s.tail[:0], last(s.tail, tailBytes)...)
	}
	s.tail = append(s.tail, last(p, tailBytes)...)
	for rest := p; len(rest) > 0; {
		text, after, complete := bytes.Cut(rest, []byte{'\n'})
		s.add(text)
		if complete {
			s.flush()
		}
		rest = after
	}
	return len(p), nil
}

func (s *stderr) add(text []byte) {
	room := lineBytes - len(s.line)
	if len(text) > room {
		text, s.lost = text[:room], true
	}
	s.line = append(s.line, text...)
}

func (s *stderr) flush() {
	level, message, fields := parseLine(s.line)
	var attributes []slog.Attr
	if len(fields) > 0 { // in a group, so that a plugin cannot set fields of the host, such as the plugin's name
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

// Flush logs an unterminated last line, after the plugin has ended.
func (s *stderr) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

// Tail returns the end of the output.
func (s *stderr) Tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ToValidUTF8(string(last(s.tail, tailBytes)), "\uFFFD")
}

func last(p []byte, n int) []byte { return p[max(0, len(p)-n):] }

// parseLine parses a log line in go-plugin's JSON format. Any other text is a message of level info.
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
	for _, key := range slices.Sorted(maps.Keys(record)) {
		if !strings.HasPrefix(key, "@") {
			attributes = append(attributes, slog.Any(key, record[key]))
		}
	}
	return level, message, attributes
}

// parseRecord decodes a JSON object and keeps the notation of numbers.
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
