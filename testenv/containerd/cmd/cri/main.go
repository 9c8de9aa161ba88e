// Command cri asks a container runtime in a node, through the product's own client, and prints the answer as JSON.
//
//	cri SOCKET version | status | pull IMAGE | image IMAGE | remove IMAGE
//
// It exits with 0 also when the runtime returns an error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/machineadm/machineadm/internal/cri"
	"github.com/machineadm/machineadm/testenv/containerd/internal/answer"
)

// timeout is longer than any call in a node takes.
const timeout = 30 * time.Second

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cri:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to cancel
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("usage: cri SOCKET version|status|pull|image|remove [IMAGE]")
	}
	var a answer.Answer
	client, err := cri.Dial(ctx, func(ctx context.Context) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", args[0])
	})
	if err == nil {
		err = errors.Join(call(ctx, client, args[1], append(args[2:], "")[0], in, &a), client.Close())
	}
	if err != nil {
		a.Error, a.Down, a.NotServed = err.Error(), errors.Is(err, cri.ErrDown), errors.Is(err, cri.ErrNotServed)
	}
	return json.NewEncoder(out).Encode(a)
}

func call(ctx context.Context, client *cri.Client, name, image string, in io.Reader, a *answer.Answer) (err error) {
	switch name {
	case "version":
		a.Version, err = client.Version(ctx)
	case "status":
		var status cri.Status
		if status, err = client.Status(ctx, true); err != nil {
			return err
		}
		a.RuntimeReady, a.NetworkReady, a.Info = status.RuntimeReady, status.NetworkReady, map[string]string{}
		for _, key := range status.Info.Keys() {
			a.Info[key], _ = status.Info.Reveal(key)
		}
	case "pull":
		var login answer.Login
		if err := json.NewDecoder(in).Decode(&login); err != nil {
			return fmt.Errorf("read who pulls: %w", err)
		}
		auth := cri.Auth{}
		if login.User != "" {
			auth = cri.NewAuth(login.User, login.Password)
		}
		a.Ref, err = client.PullImage(ctx, image, auth)
	case "image":
		a.Image, a.Found, err = client.ImageStatus(ctx, image)
	case "remove":
		err = client.RemoveImage(ctx, image)
	default:
		err = fmt.Errorf("no call %q", name)
	}
	return err
}
