package reporting

import (
	"encoding/json"
	"io"
	"log/slog"

	"github.com/machineadm/machineadm/internal/visible"
)

// Log returns a log in lines of text or JSON. Its handlers quote text that could forge a line; the writer escapes the rest.
func Log(w io.Writer, level slog.Level, asJSON bool) *slog.Logger {
	w = visible.Writer{Out: w}
	options := &slog.HandlerOptions{Level: level}
	if asJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(visible.Writer{Out: out})
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
