package controller

import (
	"fmt"
	"strings"
)

// shortened cuts a text that has more bytes than the limit, and says how many it leaves out.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const rest = 64 // for the end, and for the name of a step before it
	// The cut may be within a character.
	kept := strings.ToValidUTF8(text[:limit-rest], "")
	return fmt.Sprintf("%s ... and %d more bytes", kept, len(text)-len(kept))
}
