package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/run/values"
	"github.com/machineadm/machineadm/internal/rooted"
	"github.com/machineadm/machineadm/internal/trust"
)

// Read reads the stream of a command that makes no run, within the timeout. The path - is in.
func Read(ctx context.Context, timeout time.Duration, path string, in io.Reader) ([]byte, error) {
	return awaitStream(ctx, nil, timeout, path, in)
}

// awaitStream is readStream with interrupt and timeout, because standard input may never end.
func awaitStream(
	ctx context.Context, interrupt <-chan struct{}, timeout time.Duration, path string, in io.Reader,
) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	type answer struct {
		data []byte
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		data, err := readStream(path, in)
		read <- answer{data, err}
	}()
	select {
	case a := <-read:
		return a.data, a.err
	case <-interrupt:
		return nil, context.Canceled
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readStream reads the stream, at most one byte more than its limit, which the decoder reports.
func readStream(path string, in io.Reader) (data []byte, err error) {
	if path != "-" {
		file, err := machine.OpenStream(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // opened for reading only
		in = file
	}
	return io.ReadAll(io.LimitReader(in, document.MaxStreamBytes+1))
}

// decode sets the stream of the session. Every use of it in the run takes it as it is decoded here.
func (s *Session) decode(file string, text []byte) (err error) {
	s.text = text
	s.stream, err = document.Decode(file, bytes.NewReader(text))
	return err
}

// StreamName returns the name of a stream in messages.
func StreamName(path string) string {
	if path == "-" {
		return "<stdin>"
	}
	return path
}

// inputErrors returns the errors of a file that cannot be read or decoded.
func inputErrors(path string, err error) []report.Error {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		var out []report.Error
		for _, e := range several.Unwrap() {
			out = append(out, inputErrors(path, e)...)
		}
		return out
	}
	out := report.Error{Code: report.CodeUsage, File: StreamName(path), Message: "cannot be read: " + reason(err)}
	var wrong *document.Error
	var untrusted *trust.Error
	switch {
	case errors.As(err, &wrong):
		out = report.Error{
			Code: report.CodeUsage, File: wrong.File, Line: wrong.Position.Line, Column: wrong.Position.Column,
			Field: wrong.Field, Message: wrong.Message, Hint: wrong.Hint,
		}
	case errors.As(err, &untrusted):
		out.Code, out.Message, out.Hint = report.CodeUntrusted, "is not trusted: "+untrusted.Error(), untrusted.Remedy
	case errors.Is(err, context.DeadlineExceeded):
		out.Code, out.Message = report.CodeDeadline, "was not read completely within --timeout"
		out.Hint = "check the process that writes it, or set a longer --timeout"
	case errors.Is(err, context.Canceled):
		out.Code, out.Message, out.Hint = report.CodeInterrupted, "the run was interrupted", "run the same command again"
	case errors.Is(err, fs.ErrNotExist):
		out.Hint = "name a file that exists, or - for standard input"
	case errors.Is(err, fs.ErrPermission):
		out.Hint = "run as a user that can read it"
	case errors.Is(err, trust.ErrDirectory):
		out.Hint = "name the file itself, or - for standard input"
	case errors.Is(err, rooted.ErrNotRegular):
		out.Hint = "copy it to a file, or pipe it in with --path -"
	}
	return []report.Error{out}
}

// streamErrors are the errors of the stream, which may also come from standard input: by then its owner has opened it.
func streamErrors(path string, err error) []report.Error {
	all := inputErrors(path, err)
	for i, e := range all {
		if e.Code == report.CodeUntrusted {
			all[i].Hint += "; or check its content, and run the command with --path - < " + trust.Quote(path)
		}
	}
	return all
}

// reason omits the path, which the caller writes.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// noteStream logs the stream, and warns of a file with secrets that other users can read.
func noteStream(path string, o run.Options, log *slog.Logger) {
	log.Info("stream read", "path", o.Stream.File, "bytes", len(o.Text))
	if path == "-" || runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o044 == 0 {
		return
	}
	if values.HoldsSecret(o.Stream) {
		log.Warn("the stream contains a secret and other users can read it", "file", path, "remedy", "chmod 600 "+trust.Quote(path))
	}
}
