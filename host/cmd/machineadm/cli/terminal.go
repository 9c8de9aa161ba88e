package cli

import (
	"io"
	"os"

	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/run"
)

// show returns the observer of an apply: lines of text, on a terminal with a status line below. Other output during the run
// must use the returned streams. The caller calls end.
func (o *applyFlags) show(s streams) (observe func(run.Event), _ streams, end func()) {
	lines := reporting.Text{Out: s.out, Err: s.err, Width: s.width}.Observe
	if o.output != "text" {
		return choose(o, s.out, lines), s, func() {}
	}
	restore, _, ok := openTerminal(s.out)
	if !ok {
		return lines, s, func() {}
	}
	errors := s.err
	if sameFile(s.out, s.err) {
		errors = nil
	}
	live := reporting.NewLive(s.out, colors(), errors, s.width)
	s.out = live
	if errors == nil {
		s.err = live
	}
	return live.Observe, s, func() {
		live.Close()
		restore()
	}
}

// coloring returns whether output to out is colored. The caller calls end.
func coloring(out io.Writer) (_ reporting.Color, end func()) {
	restore, _, ok := openTerminal(out)
	if !ok {
		return false, func() {}
	}
	return colors(), restore
}

// columns returns the width of a terminal, 0 if out is none or its width is unknown.
func columns(out io.Writer) int {
	restore, columns, ok := openTerminal(out)
	if !ok {
		return 0
	}
	restore()
	return columns
}

// colors follows https://no-color.org.
func colors() reporting.Color { return os.Getenv("NO_COLOR") == "" }

// sameFile reports whether two streams are the same file, such as a terminal.
func sameFile(one, other io.Writer) bool {
	a, ok := one.(*os.File)
	b, too := other.(*os.File)
	if !ok || !too {
		return false
	}
	first, err := a.Stat()
	if err != nil {
		return false
	}
	second, err := b.Stat()
	return err == nil && os.SameFile(first, second)
}
