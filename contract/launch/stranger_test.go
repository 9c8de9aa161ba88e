package launch_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	testify "github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/require"
)

// asStranger makes the test binary a plugin that makes the handshake and little else; the second argument selects what.
const asStranger = "serve-as-stranger"

// stranger serves every call by never answering it.
func stranger(how string) error {
	network, address, certificate := "unix", filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s"), ""
	switch how {
	case "deaf":
	case "leaky":
		if err := leak(); err != nil {
			return err
		}
	case "usurped":
		return usurped(filepath.Dir(address))
	case "tcp":
		network, address = "tcp", "127.0.0.1:0"
	case "elsewhere":
		address = filepath.Join(filepath.Dir(filepath.Dir(address)), "elsewhere")
	case "certificate":
		der, err := selfSigned()
		if err != nil {
			return err
		}
		certificate = base64.RawStdEncoding.EncodeToString(der)
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	if how == "inherited" {
		listener = leaking{listener}
	}
	fmt.Printf("1|%d|%s|%s|grpc|%s\n", pluginv1.ProtocolVersion, network, listener.Addr(), certificate)
	return grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		fmt.Fprintln(os.Stderr, "called")
		if how == "inherited" {
			os.Exit(1)
		}
		time.Sleep(time.Hour) // longer than any test: a call that is not answered
		return nil
	})).Serve(listener)
}

func selfSigned() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	return x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
}

func launchStranger(t *testing.T, how string) (*launch.Process, error) {
	t.Helper()
	return launchStrangerTo(t, how, &strings.Builder{})
}

func launchStrangerTo(t *testing.T, how string, stderr io.Writer) (*launch.Process, error) {
	t.Helper()
	require.Linux(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return launch.Start(t.Context(), launch.Options{
		Command: exec.Command(self, asStranger, how), SocketDir: socketDir(t), Stderr: stderr,
		Environment: []string{"GORACE=" + os.Getenv("GORACE")},
	})
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]struct{ says, clause string }{
		"tcp":         {"listens outside of", "H-7"},
		"elsewhere":   {"listens outside of", "H-7"},
		"certificate": {"has a certificate", "H-11"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p, err := launchStranger(t, how)
			if err == nil {
				p.Kill()
				t.Fatal("it was accepted")
			}
			var failure *launch.Error
			testify.ErrorAs(t, err, &failure)
			assert.Contains(t, failure.Error(), want.says)
			assert.Equal(t, want.clause, failure.Clause())
		})
	}
}

// TestKillDoesNotWaitForShutdown: Kill ends a plugin that answers no call, not even Shutdown.
func TestKillDoesNotWaitForShutdown(t *testing.T) {
	t.Parallel()
	p, err := launchStranger(t, "deaf")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { p.Kill(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("Kill still waits")
	}
	if !p.Exited() {
		t.Error("the process is still there")
	}
}
