package timeline

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/machineadm/machineadm/host/reporting/words"
)

// style is the style sheet of a picture, for light and dark.
//
//go:embed timeline.css
var style string

// The measures of a picture, in pixels. Fonts differ: a character of 11 px is taken for 6.4 px wide, so that texts fit.
const (
	pictureWidth = 1200
	margin       = 16
	character    = 6.4
	widestLabel  = 340
)

// SVG writes a picture that needs nothing else: no script, no font, no other file.
func SVG(w io.Writer, l Layout) error {
	p := picture{Layout: l, y: margin}
	longest := 0
	for _, r := range l.Rows {
		longest = max(longest, utf8.RuneCountInString(r.Label)+2*r.Depth)
	}
	p.left = margin + min(widestLabel, float64(longest)*character+10)
	p.right = pictureWidth - margin
	p.title()
	p.axis()
	for _, r := range l.Rows {
		p.row(r)
	}
	p.end()
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" role="img">
<title>%s</title>
<style>
%s</style>
<rect class="page" width="100%%" height="100%%"/>
%s%s</svg>
`, pictureWidth, p.y, pictureWidth, p.y, escape(l.Title), style, p.lines(), p.b.String())
	return err
}

type picture struct {
	Layout
	b           strings.Builder
	y           float64 // of the next row
	left, right float64 // of the axis
	top         float64 // of the rows
}

// at returns the position of a time.
func (p *picture) at(d time.Duration) float64 {
	return p.left + (p.right-p.left)*float64(d)/float64(p.Length)
}

func (p *picture) text(x, y float64, class, text string) {
	fmt.Fprintf(&p.b, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>\n", x, y, class, escape(text))
}

// cut writes a text of at most this width, in pixels. A longer one is whole in its tooltip.
func (p *picture) cut(x, y float64, class, text string, width float64) {
	shown, tip := cut(text, int(width/character)), ""
	if shown != text {
		tip = "<title>" + escape(text) + "</title>"
	}
	fmt.Fprintf(&p.b, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s%s</text>\n", x, y, class, tip, escape(shown))
}

// title writes the headline, in as many lines as it needs, up to four.
func (p *picture) title() {
	line, lines := "", 0
	flush := func() {
		if line != "" && lines < 4 {
			p.y += 20
			p.text(margin, p.y, "title", line)
			lines++
		}
		line = ""
	}
	for word := range strings.FieldsSeq(p.Title) {
		if utf8.RuneCountInString(line)+utf8.RuneCountInString(word) > (pictureWidth-2*margin)/8 {
			flush()
		}
		line = strings.TrimSpace(line + " " + word)
	}
	flush()
	p.y += 20
	p.text(margin, p.y, "quiet", fmt.Sprintf("from %s, %s", p.Begin.Format(words.TimeFormat), duration(p.Length)))
}

// axis writes the legend and the times above the rows.
func (p *picture) axis() {
	p.y += 22
	used := map[Kind]bool{}
	for _, r := range p.Rows {
		for _, b := range r.Bars {
			used[b.Kind] = true
		}
	}
	x := float64(margin)
	for _, look := range looks() {
		if used[look.kind] {
			fmt.Fprintf(&p.b, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\"/>\n", class(look.kind), x, p.y-10)
			p.text(x+17, p.y, "quiet", string(look.kind))
			x += 17 + float64(len(look.kind))*character + 16
		}
	}
	p.y += 26
	step := step(p.Length, 10)
	for d := time.Duration(0); d <= p.Length; d += step {
		if anchor := p.at(d); anchor < p.right-30 {
			p.text(anchor+3, p.y, "quiet", words.Brief(d))
		}
	}
	p.y += 6
	p.top = p.y
}

// lines returns the vertical lines behind the rows.
func (p *picture) lines() string {
	var b strings.Builder
	for d := time.Duration(0); d <= p.Length; d += step(p.Length, 10) {
		fmt.Fprintf(&b, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", p.at(d), p.at(d), p.top-16, p.y-margin)
	}
	return b.String()
}

// row writes a row: its label, its bars, and its note where there is room for it.
func (p *picture) row(r Row) {
	height := 20.0
	if r.Depth == 2 {
		height = 17
	}
	indent := float64(r.Depth) * 2 * character
	class := "label"
	if r.Depth != 1 {
		class = map[int]string{0: "machine", 2: "quiet"}[r.Depth]
	}
	p.cut(margin+indent, p.y+height-6, class, r.Label, p.left-margin-indent)
	end := p.left
	for _, b := range r.Bars {
		end = max(end, p.bar(b, height))
	}
	note := r.note()
	size := float64(utf8.RuneCountInString(note))*character + 10
	switch begin := p.begin(r); {
	case note == "":
	case r.Depth == 0 && size > 200: // the first line of status
		p.y += height
		p.cut(p.left+4, p.y+height-8, "note "+string(r.Kind), note, p.right-p.left)
	case end+size < p.right:
		p.text(end+5, p.y+height-6, "note "+string(r.Kind), note)
	case begin-size > p.left:
		fmt.Fprintf(&p.b, "<text x=\"%.1f\" y=\"%.1f\" class=\"note %s\" text-anchor=\"end\">%s</text>\n", begin-5, p.y+height-6, r.Kind, escape(note))
	}
	p.y += height
}

// begin returns where the bars of a row begin.
func (p *picture) begin(r Row) float64 {
	begin := p.right
	for _, b := range r.Bars {
		begin = min(begin, p.at(b.Start))
	}
	return begin
}

// bar writes a bar with its tooltip, and returns its end. The shortest is a line.
func (p *picture) bar(b Bar, height float64) (end float64) {
	x := p.at(b.Start)
	width := max(1.5, p.at(b.End)-x)
	tip := string(b.Kind) + " " + duration(b.End-b.Start)
	if b.Text != "" {
		tip += ": " + words.Escape(b.Text)
	}
	fmt.Fprintf(&p.b, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\"><title>%s</title></rect>\n",
		class(b.Kind), x, p.y+3, width, height-6, escape(tip))
	return x + width
}

func (p *picture) end() {
	if p.Hidden > 0 {
		p.y += 16
		p.text(margin, p.y, "quiet", fmt.Sprintf("%s left out, the longest of %s", words.Counted(p.Hidden, "row"), duration(p.Longest)))
	}
	p.y += margin
}

// class is the name of a kind in the style sheet.
func class(k Kind) string { return strings.ReplaceAll(string(k), " ", "-") }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // into memory
	return b.String()
}
