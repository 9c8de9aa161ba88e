// Command overtake starts a plugin and sends it a Stop that overtakes an Apply (SPEC P-28):
//
//	overtake PLUGIN ROOT <DOCUMENT.JSON
//
// It sends the headers of an Apply, calls Stop, waits for the answer, and only then sends the message of the Apply. It
// fails unless that Apply ends as stopped, without a change, and the next one is not stopped.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

const deadline = time.Minute

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: overtake PLUGIN ROOT <DOCUMENT.JSON")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "overtake:", err)
		os.Exit(1) //nolint:gocritic // the deadline ends with the process
	}
}

func run(ctx context.Context, plugin, root string) (err error) {
	document, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	conn, end, err := start(ctx, plugin)
	if err != nil {
		return fmt.Errorf("start the plugin: %w", err)
	}
	defer func() { err = errors.Join(err, end()) }()
	request := &pb.ApplyRequest{Document: document, Root: root, Target: &pb.Target{Os: "linux", Architecture: runtime.GOARCH, Distribution: "debian"}}
	overtaken, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, pb.Configurator_Apply_FullMethodName)
	if err != nil {
		return fmt.Errorf("send the headers of Apply: %w", err)
	}
	if _, err := pb.NewConfiguratorClient(conn).Stop(ctx, &pb.StopRequest{}); err != nil {
		return fmt.Errorf("call Stop: %w", err)
	}
	switch changed, finished, err := apply(overtaken, request); {
	case err != nil:
		return fmt.Errorf("the Apply that Stop overtook: %w", err)
	case !finished.GetStopped() || changed > 0:
		return fmt.Errorf("the Apply that Stop overtook made %d changes, stopped is %t", changed, finished.GetStopped())
	}
	later, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, pb.Configurator_Apply_FullMethodName)
	if err != nil {
		return err
	}
	switch changed, finished, err := apply(later, request); {
	case err != nil:
		return fmt.Errorf("the Apply after Stop: %w", err)
	case finished.GetStopped() || changed == 0:
		return fmt.Errorf("the Apply after Stop made %d changes, stopped is %t", changed, finished.GetStopped())
	}
	return nil
}

// apply sends the request and returns the number of changes and the last event.
func apply(stream grpc.ClientStream, request *pb.ApplyRequest) (changed int, finished *pb.Finished, err error) {
	if err := errors.Join(stream.SendMsg(request), stream.CloseSend()); err != nil {
		return 0, nil, err
	}
	for {
		var event pb.ApplyEvent
		if err := stream.RecvMsg(&event); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return changed, nil, err
		}
		if event.GetChanged() != nil {
			changed++
		}
		if event.GetFinished() != nil {
			finished = event.GetFinished()
		}
	}
	if finished == nil {
		return changed, nil, errors.New("it ended without finished")
	}
	if cause := finished.GetError(); cause != nil {
		return changed, nil, fmt.Errorf("it failed: %s", cause.GetMessage())
	}
	return changed, finished, nil
}

// start starts the plugin as SPEC section 6 describes and connects to its socket.
func start(ctx context.Context, plugin string) (*grpc.ClientConn, func() error, error) {
	sockets, err := os.MkdirTemp("", "overtake-")
	if err != nil {
		return nil, nil, err
	}
	handshake := launch.Handshake()
	command := exec.CommandContext(ctx, plugin) //nolint:gosec // the plugin under test
	command.Env = []string{
		handshake.MagicCookieKey + "=" + handshake.MagicCookieValue, "PLUGIN_UNIX_SOCKET_DIR=" + sockets,
		fmt.Sprintf("PLUGIN_PROTOCOL_VERSIONS=%d", pluginv1.ProtocolVersion),
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/root",
	}
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(sockets))
	}
	end := func() error {
		killed := command.Process.Kill()
		_ = command.Wait() // killed
		return errors.Join(killed, os.RemoveAll(sockets))
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read its line: %w", err), end())
	}
	fields := strings.Split(line, "|")
	if len(fields) < 5 {
		return nil, nil, errors.Join(fmt.Errorf("its line has %d fields", len(fields)), end())
	}
	conn, err := grpc.NewClient("unix:"+fields[3], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return conn, func() error { return errors.Join(conn.Close(), end()) }, nil
}
