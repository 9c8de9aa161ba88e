//go:build !windows

// Package critest serves the Container Runtime Interface from values, for tests.
package critest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Runtime is a container runtime. Set its fields before Serve.
type Runtime struct {
	runtime.UnimplementedRuntimeServiceServer
	runtime.UnimplementedImageServiceServer
	// Images are the references of the images that it has.
	Images []string
	// Directory is where they are.
	Directory string
	// Exited maps the pods of containers that have ended to their log files. Each pod has one container, named as any.
	Exited map[string]string
	// Restarted maps the ones that have another container since, which runs, to its start.
	Restarted map[string]time.Time
	// NotReady is the reason why it cannot run containers; empty if it can.
	NotReady string
}

// Serve listens on the socket until the test ends.
func Serve(t testing.TB, socket string, r *Runtime) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtime.RegisterRuntimeServiceServer(server, r)
	runtime.RegisterImageServiceServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
}

// Status implements runtime.RuntimeServiceServer.
func (r *Runtime) Status(context.Context, *runtime.StatusRequest) (*runtime.StatusResponse, error) {
	return &runtime.StatusResponse{Status: &runtime.RuntimeStatus{Conditions: []*runtime.RuntimeCondition{
		{Type: runtime.RuntimeReady, Status: r.NotReady == "", Reason: r.NotReady},
	}}}, nil
}

// ImageStatus implements runtime.ImageServiceServer.
func (r *Runtime) ImageStatus(_ context.Context, q *runtime.ImageStatusRequest) (*runtime.ImageStatusResponse, error) {
	for _, image := range r.Images {
		if image == q.GetImage().GetImage() {
			return &runtime.ImageStatusResponse{Image: &runtime.Image{Id: image}}, nil
		}
	}
	return &runtime.ImageStatusResponse{}, nil
}

// ImageFsInfo implements runtime.ImageServiceServer.
func (r *Runtime) ImageFsInfo(context.Context, *runtime.ImageFsInfoRequest) (*runtime.ImageFsInfoResponse, error) {
	return &runtime.ImageFsInfoResponse{ImageFilesystems: []*runtime.FilesystemUsage{{FsId: &runtime.FilesystemIdentifier{Mountpoint: r.Directory}}}}, nil
}

// ListContainers implements runtime.RuntimeServiceServer.
func (r *Runtime) ListContainers(_ context.Context, q *runtime.ListContainersRequest) (*runtime.ListContainersResponse, error) {
	pod := q.GetFilter().GetLabelSelector()["io.kubernetes.pod.name"]
	if _, ok := r.Exited[pod]; !ok {
		return &runtime.ListContainersResponse{}, nil
	}
	containers := []*runtime.Container{{Id: pod, CreatedAt: 1}}
	if _, ok := r.Restarted[pod]; ok {
		containers = append(containers, &runtime.Container{Id: again + pod, CreatedAt: 2})
	}
	return &runtime.ListContainersResponse{Containers: containers}, nil
}

// again begins the ID of the container that runs.
const again = "again-"

// ContainerStatus implements runtime.RuntimeServiceServer.
func (r *Runtime) ContainerStatus(_ context.Context, q *runtime.ContainerStatusRequest) (*runtime.ContainerStatusResponse, error) {
	if pod, ok := strings.CutPrefix(q.GetContainerId(), again); ok {
		return &runtime.ContainerStatusResponse{Status: &runtime.ContainerStatus{
			State: runtime.ContainerState_CONTAINER_RUNNING, StartedAt: r.Restarted[pod].UnixNano(), Metadata: &runtime.ContainerMetadata{Attempt: 5},
		}}, nil
	}
	return &runtime.ContainerStatusResponse{Status: &runtime.ContainerStatus{
		State: runtime.ContainerState_CONTAINER_EXITED, ExitCode: 1, Reason: "Error", LogPath: r.Exited[q.GetContainerId()],
		Metadata: &runtime.ContainerMetadata{Attempt: 4},
	}}, nil
}
