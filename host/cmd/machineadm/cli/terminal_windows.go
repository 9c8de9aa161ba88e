package cli

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// openTerminal enables control sequences if a stream is a console, and returns its width, 0 if unknown. restore disables them.
func openTerminal(stream io.Writer) (restore func(), columns int, ok bool) {
	file, ok := stream.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil, 0, false
	}
	console := windows.Handle(file.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return nil, 0, false
	}
	if err := windows.SetConsoleMode(console, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return nil, 0, false // older than Windows 10
	}
	var screen windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(console, &screen); err == nil {
		columns = int(screen.Window.Right-screen.Window.Left) + 1
	}
	return func() { _ = windows.SetConsoleMode(console, mode) }, columns, true // the console may be closed
}

// isTerminal reports whether a stream is a console.
func isTerminal(stream io.Writer) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(file.Fd()), &mode) == nil
}
