package cli

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// openTerminal turns on what draws in a console, if a stream is connected to one that can.
func openTerminal(stream io.Writer) (*terminal, bool) {
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
	return &terminal{file: file, restore: func() {
		_ = windows.SetConsoleMode(console, mode) // the console is gone, then
	}}, true
}

// sameTerminal says whether another stream is connected to the console, too: a process has one at most.
func sameTerminal(_, other io.Writer) bool {
	file, ok := other.(*os.File)
	if !ok {
		return false
	}
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(file.Fd()), &mode) == nil
}

// Size implements reporting.Terminal.
func (t *terminal) Size() (width, height int) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(t.file.Fd()), &info); err != nil {
		return 0, 0
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1
}

// continued is empty: Windows stops no process.
func continued() []os.Signal { return nil }
