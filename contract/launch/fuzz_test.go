package launch

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writer is a program that writes to its standard output and does nothing else. Without a line it ends at once.
type writer struct {
	writes []byte
	ended  chan struct{}
	once   sync.Once
}

func (s *writer) Start(_ context.Context, environment []string, stdout, _ *os.File) error {
	writes := string(s.writes)
	for _, entry := range environment {
		if dir, is := strings.CutPrefix(entry, "PLUGIN_UNIX_SOCKET_DIR="); is {
			writes = strings.ReplaceAll(writes, "SOCKET", filepath.Join(dir, "s"))
		}
	}
	_, err := stdout.WriteString(writes[:min(len(writes), 32<<10)]) // a pipe takes as much before it is read
	if !strings.Contains(writes, "\n") {
		return errors.Join(err, s.Kill())
	}
	return err
}

func (s *writer) Wait() error {
	<-s.ended
	return nil
}

func (s *writer) Kill() error {
	s.once.Do(func() { close(s.ended) })
	return nil
}

func (s *writer) PID() int { return 1 << 30 }

// FuzzHandshakeLine: whatever a program writes to its standard output, Start returns, and accepts only a plugin with this
// protocol on a socket in the given directory.
func FuzzHandshakeLine(f *testing.F) {
	for _, seed := range []string{
		"1|1|unix|SOCKET|grpc|\n", "1|1|unix|SOCKET|grpc\n", "1|1|unix|SOCKET|grpc||true\n", "1|1|unix|/tmp/s|grpc|\n",
		"1|2|unix|SOCKET|grpc|\n", "1|1|tcp|127.0.0.1:1|grpc|\n", "1|1|unix|SOCKET|grpc|AAAA\n", "1|1|unix|SOCKET|netrpc|\n",
		"1|1|unix\n", "|||||\n", "\n", "", "hello\n1|1|unix|SOCKET|grpc|\n", "1|1|unix|SOCKET/../x|grpc|\n", "1|-1|unix|SOCKET|grpc|\n",
	} {
		f.Add([]byte(seed))
	}
	if runtime.GOOS == "windows" {
		f.Skip("the plugins of Windows listen on TCP")
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		p, err := Start(t.Context(), Options{
			Program: &writer{writes: line, ended: make(chan struct{})}, SocketDir: os.TempDir(), Stderr: io.Discard,
		})
		if err != nil {
			var launch *Error
			require.ErrorAs(t, err, &launch)
			assert.NotEmpty(t, launch.Error())
			return
		}
		require.NoError(t, p.runner.Kill(t.Context())) // nothing answers Shutdown
		p.Kill()
		fields := strings.Split(strings.TrimSpace(strings.SplitN(string(line), "\n", 2)[0]), "|")
		require.GreaterOrEqual(t, len(fields), 5)
		assert.Equal(t, []string{"1", "unix", "grpc"}, []string{fields[0], fields[2], fields[4]})
		assert.Contains(t, fields[3], "SOCKET")
	})
}
