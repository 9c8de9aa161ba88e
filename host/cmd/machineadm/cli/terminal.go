package cli

import (
	"io"
	"os"

	"github.com/machineadm/machineadm/host/reporting"
)

// streams are the standard streams of the process.
type streams struct {
	in       io.Reader
	out, err io.Writer
	width    int // of err, 0 if it is not a terminal
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
