package cri

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerStatus is what the runtime reports of a container.
type ContainerStatus struct {
	// State is running, exited, created or unknown.
	State string
	// ExitCode is that of an exited container.
	ExitCode int
	// Reason and Message are the runtime's words.
	Reason, Message string
	// Attempt counts the containers of this name that the pod had before.
	Attempt int
	// Started is when it began to run; the beginning of 1970 if it has not.
	Started time.Time
	// LogPath is the file of its output.
	LogPath string
}

// ContainerStatuses returns the status of each container of this name in the pod, the newest first. One that ends is replaced by
// another, and the kubelet keeps the last that has ended.
func (c *Client) ContainerStatuses(ctx context.Context, pod, name string) ([]ContainerStatus, error) {
	list, err := c.runtime.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.container.name": name},
	}})
	if err != nil {
		return nil, err
	}
	containers := list.GetContainers()
	slices.SortFunc(containers, func(a, b *runtime.Container) int { return cmp.Compare(b.GetCreatedAt(), a.GetCreatedAt()) })
	statuses := make([]ContainerStatus, 0, len(containers))
	for _, container := range containers {
		r, err := c.runtime.ContainerStatus(ctx, &runtime.ContainerStatusRequest{ContainerId: container.GetId()})
		if status.Code(err) == codes.NotFound { // removed since the list
			continue
		}
		if err != nil {
			return nil, err
		}
		s := r.GetStatus()
		statuses = append(statuses, ContainerStatus{
			State:    strings.ToLower(strings.TrimPrefix(s.GetState().String(), "CONTAINER_")),
			ExitCode: int(s.GetExitCode()), Reason: s.GetReason(), Message: s.GetMessage(),
			Attempt: int(s.GetMetadata().GetAttempt()), Started: time.Unix(0, s.GetStartedAt()), LogPath: s.GetLogPath(),
		})
	}
	return statuses, nil
}
