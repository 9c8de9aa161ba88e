package reporting

import (
	"fmt"
	"slices"
	"strings"
)

const (
	eraseLine  = "\x1b[K" // from the cursor to the end of the line
	eraseBelow = "\x1b[J" // from the cursor to the end of the screen
)

// canvas is what the live region was when it was drawn last. The cursor stands on the line below it. It uses only what
// every terminal knows: up, erase to the end of the line, erase to the end of the screen.
type canvas struct {
	drawn []string
	cells []int
	width int
}

// draw returns what is to be sent to a terminal of this width so that above stands there for good, in whole lines, and
// the live region below it. It is nothing when nothing has changed.
func (c *canvas) draw(above string, live []line, color Color, width int) string {
	next := canvas{width: width}
	for _, l := range live {
		next.drawn, next.cells = append(next.drawn, l.paint(color)), append(next.cells, l.cells())
	}
	last := *c
	*c = next
	if above == "" && width == last.width && slices.Equal(last.drawn, next.drawn) {
		return ""
	}
	var b strings.Builder
	up := last.rows(width)
	if up > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA", up)
	}
	if above != "" || width != last.width || len(next.drawn) < len(last.drawn) {
		if up > 0 { // not from the first cell on: some terminals keep what is erased with the whole screen
			b.WriteString(eraseLine + "\n" + eraseBelow + "\x1b[A")
		}
		last.drawn = nil
	}
	b.WriteString(above)
	for i, text := range next.drawn {
		if i >= len(last.drawn) || last.drawn[i] != text {
			b.WriteString(eraseLine + text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// rows is how many rows the region fills now: a terminal that became narrower has folded its lines.
func (c *canvas) rows(width int) int {
	n := 0
	for _, cells := range c.cells {
		n += max(1, (cells+width-1)/width)
	}
	return n
}
