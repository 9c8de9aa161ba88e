//go:build !windows

package cri_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/machineadm/machineadm/internal/cri"
)

// daemon is a runtime of functions; each is set by the tests that need it.
type daemon struct {
	runtime.UnimplementedRuntimeServiceServer
	runtime.UnimplementedImageServiceServer
	status func(context.Context, *runtime.StatusRequest) (*runtime.StatusResponse, error)
	pull   func(*runtime.PullImageRequest) (*runtime.PullImageResponse, error)
	images map[string]*runtime.Image
}

func (d *daemon) Status(ctx context.Context, r *runtime.StatusRequest) (*runtime.StatusResponse, error) {
	return d.status(ctx, r)
}

func (d *daemon) PullImage(_ context.Context, r *runtime.PullImageRequest) (*runtime.PullImageResponse, error) {
	return d.pull(r)
}

func (d *daemon) ImageStatus(_ context.Context, r *runtime.ImageStatusRequest) (*runtime.ImageStatusResponse, error) {
	return &runtime.ImageStatusResponse{Image: d.images[r.GetImage().GetImage()]}, nil
}

func (*daemon) ImageFsInfo(context.Context, *runtime.ImageFsInfoRequest) (*runtime.ImageFsInfoResponse, error) {
	return &runtime.ImageFsInfoResponse{ImageFilesystems: []*runtime.FilesystemUsage{
		{}, {FsId: &runtime.FilesystemIdentifier{Mountpoint: "/var/lib/images"}},
	}}, nil
}

func (d *daemon) RemoveImage(_ context.Context, r *runtime.RemoveImageRequest) (*runtime.RemoveImageResponse, error) {
	delete(d.images, r.GetImage().GetImage())
	return &runtime.RemoveImageResponse{}, nil
}

func (*daemon) Version(context.Context, *runtime.VersionRequest) (*runtime.VersionResponse, error) {
	return &runtime.VersionResponse{Version: "0.1.0", RuntimeName: "fake", RuntimeVersion: "v9.8.7", RuntimeApiVersion: "v1"}, nil
}

func (*daemon) ListContainers(_ context.Context, r *runtime.ListContainersRequest) (*runtime.ListContainersResponse, error) {
	if r.GetFilter().GetLabelSelector()["io.kubernetes.pod.name"] == "kube-apiserver-a" {
		return &runtime.ListContainersResponse{Containers: []*runtime.Container{
			{Id: "old", CreatedAt: 1}, {Id: r.GetFilter().GetLabelSelector()["io.kubernetes.container.name"], CreatedAt: 3}, {Id: "removed", CreatedAt: 2},
		}}, nil
	}
	return &runtime.ListContainersResponse{}, nil
}

func (*daemon) ContainerStatus(_ context.Context, r *runtime.ContainerStatusRequest) (*runtime.ContainerStatusResponse, error) {
	if r.GetContainerId() == "removed" {
		return nil, status.Error(codes.NotFound, "no such container")
	}
	return &runtime.ContainerStatusResponse{Status: &runtime.ContainerStatus{
		Id: r.GetContainerId(), State: runtime.ContainerState_CONTAINER_EXITED, ExitCode: 1, Reason: "Error", Message: r.GetContainerId(),
		Metadata: &runtime.ContainerMetadata{Attempt: 4}, StartedAt: 5_000_000_006, LogPath: "/var/log/pods/a/4.log",
	}}, nil
}

// socket is where a daemon listens in a test.
func socket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri-") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "s")
}

// serve listens on the path until the test ends or stop is called; nil serves nothing of the interface.
func serve(t *testing.T, path string, d *daemon) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	if d != nil {
		runtime.RegisterRuntimeServiceServer(server, d)
		runtime.RegisterImageServiceServer(server, d)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it served
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// at opens connections to a socket.
func at(path string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", path)
	}
}

func dial(t *testing.T, path string) *cri.Client {
	t.Helper()
	c, err := cri.Dial(t.Context(), at(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func start(t *testing.T, d *daemon) *cri.Client {
	t.Helper()
	path := socket(t)
	serve(t, path, d)
	return dial(t, path)
}
