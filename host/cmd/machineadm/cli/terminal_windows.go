package cli

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// openTerminal enables control sequences if a stream is a console. restore disables them.
func openTerminal(stream io.Writer) (restore func(), ok bool) {
	file, ok := stream.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	console := windows.Handle(file.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return nil, false
	}
	if err := windows.SetConsoleMode(console, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return nil, false // older than Windows 10
	}
	return func() { _ = windows.SetConsoleMode(console, mode) }, true // the console may be closed
}
