package cri

import (
	"cmp"
	"context"
	"slices"
	"strings"

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
	// LogPath is the file of its output.
	LogPath string
}

// ContainerStatus returns the status of the newest container of this name in the pod; ok is false when the runtime has none.
func (c *Client) ContainerStatus(ctx context.Context, pod, name string) (_ ContainerStatus, ok bool, err error) {
	list, err := c.runtime.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.container.name": name},
	}})
	if err != nil || len(list.GetContainers()) == 0 {
		return ContainerStatus{}, false, err
	}
	newest := slices.MaxFunc(list.GetContainers(), func(a, b *runtime.Container) int {
		return cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt())
	})
	r, err := c.runtime.ContainerStatus(ctx, &runtime.ContainerStatusRequest{ContainerId: newest.GetId()})
	if err != nil {
		return ContainerStatus{}, false, err
	}
	s := r.GetStatus()
	return ContainerStatus{
		State:    strings.ToLower(strings.TrimPrefix(s.GetState().String(), "CONTAINER_")),
		ExitCode: int(s.GetExitCode()), Reason: s.GetReason(), Message: s.GetMessage(),
		Attempt: int(s.GetMetadata().GetAttempt()), LogPath: s.GetLogPath(),
	}, true, nil
}
