package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
)

// Pauses between attempts; each is twice the one before.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
)

// signed is a verified manifest with its texts.
type signed struct {
	*manifest.Manifest
	text, signature []byte
}

// release fetches and verifies the manifest.
func (s *source) release(ctx context.Context, keys []manifest.Key) (*signed, error) {
	text, err := s.read(ctx, manifest.FileName, manifest.MaxSize)
	if err != nil {
		return nil, err
	}
	signature, err := s.read(ctx, manifest.SignatureName, manifest.MaxSignatureSize)
	if err != nil {
		return nil, err
	}
	m, err := manifest.Verify(text, signature, keys)
	if wrong, ok := errors.AsType[*manifest.SignatureError](err); ok {
		return nil, s.refused(manifest.SignatureName, wrong.Problem, wrong.Remedy)
	}
	if err != nil {
		return nil, s.refused(manifest.FileName, strings.TrimPrefix(err.Error(), manifest.FileName+": "), "use a machineadm of the same release, or ask the publisher for a valid manifest")
	}
	return &signed{m, text, signature}, nil
}

// read returns a file of at most limit bytes.
func (s *source) read(ctx context.Context, file string, limit int64) (_ []byte, err error) {
	data, err := s.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	text, err := io.ReadAll(io.LimitReader(data, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = s.refused(file, fmt.Sprintf("is larger than %d bytes", limit), "check the location")
	}
	return text, err
}

// fetch writes a file of the release to an empty local one, and verifies what was stored there.
func (s *source) fetch(ctx context.Context, f manifest.File, to *os.File) (err error) {
	data, err := s.open(ctx, f.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if _, err := io.Copy(to, io.LimitReader(data, f.Size+1)); err != nil {
		return err
	}
	n, err := to.Seek(0, io.SeekCurrent) // io.Copy counts too little if copy_file_range(2) fails in the middle, and it reads on
	if err != nil {
		return err
	}
	var problem string
	switch {
	case n < f.Size:
		problem = fmt.Sprintf("has %d bytes, and the manifest lists %d: the copy is incomplete", n, f.Size)
	case n > f.Size:
		problem = fmt.Sprintf("is larger than the %d bytes that the manifest lists", f.Size)
	default:
		sum, err := digest(io.NewSectionReader(to, 0, f.Size))
		if err != nil {
			return err
		}
		if sum == f.SHA256 {
			return nil
		}
		problem = "has the SHA-256 " + sum + ", and the manifest lists " + f.SHA256
	}
	return s.refused(f.Name, problem, "use another mirror: this file was changed or damaged")
}

func digest(r io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// fromAny calls try for each location in turn until one succeeds. It repeats that while a failure may be temporary, until
// the context ends.
func fromAny(ctx context.Context, o Options, try func(*source) error) error {
	client := newClient()
	defer client.CloseIdleConnections()
	var sources []*source
	for i, text := range o.Locations {
		s, err := parse(i+1, text, client)
		if err != nil {
			return err
		}
		sources = append(sources, s)
	}
	failures := make([]*Error, len(sources))
	warned := map[string]bool{}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		again := false
		for i, s := range sources {
			if failures[i] != nil && !failures[i].temporary {
				continue
			}
			err := try(s)
			failed, ok := errors.AsType[*Error](err)
			switch {
			case err == nil:
				return nil
			case !ok || !failed.elsewhere:
				return localError(err)
			case ctx.Err() == nil || failures[i] == nil:
				failures[i] = failed
			}
			again = again || failed.temporary
			if message := failed.Problem; !warned[message] && ctx.Err() == nil && (failed.temporary || len(sources) > 1) {
				warned[message] = true
				o.Warn(message + retried(ctx, failed))
			}
		}
		if !again {
			return summary(failures)
		}
		select {
		case <-ctx.Done():
			return stopped(ctx, summary(failures))
		case <-time.After(pause/2 + rand.N(pause/2)): // not all machines of a fleet at once
		}
	}
}

// retried returns for how long a location is tried again after a failure, for messages.
func retried(ctx context.Context, failed *Error) string {
	if until, ok := ctx.Deadline(); ok && failed.temporary {
		return "; trying again for " + time.Until(until).Round(time.Second).String()
	}
	return ""
}

// summary returns one error for the failures of all locations; the gravest one first.
func summary(failures []*Error) *Error {
	first := failures[0]
	var all bytes.Buffer
	for i, f := range failures {
		if f.Code == report.ExitUntrusted && first.Code != report.ExitUntrusted {
			first = f
		}
		if i > 0 {
			all.WriteString("; ")
		}
		all.WriteString(f.Problem)
	}
	return &Error{Code: first.Code, Problem: all.String(), Remedy: first.Remedy}
}

// stopped returns the error of attempts that the context ended.
func stopped(ctx context.Context, last *Error) *Error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Code: report.ExitDeadline, Problem: "the time limit is reached: " + last.Problem, Remedy: last.Remedy}
	}
	return &Error{Code: report.ExitInterrupted, Problem: "interrupted: " + last.Problem, Remedy: "run again, which is safe"}
}
