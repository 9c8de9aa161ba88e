package cri

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	var filter message
	for label, value := range map[string]string{"io.kubernetes.pod.name": pod, "io.kubernetes.container.name": name} {
		filter = filter.with(4, message(nil).with(1, []byte(label)).with(2, []byte(value)))
	}
	list, err := c.call(ctx, "RuntimeService/ListContainers", message(nil).with(1, filter))
	if err != nil {
		return nil, err
	}
	containers := list.all(1)
	slices.SortFunc(containers, func(a, b message) int { return cmp.Compare(b.number(7), a.number(7)) })
	statuses := make([]ContainerStatus, 0, len(containers))
	for _, container := range containers {
		r, err := c.call(ctx, "RuntimeService/ContainerStatus", message(nil).with(1, container.inner(1)))
		if status.Code(err) == codes.NotFound { // removed since the list
			continue
		}
		if err != nil {
			return nil, err
		}
		s := r.inner(1)
		statuses = append(statuses, ContainerStatus{
			State:    []string{"created", "running", "exited", "unknown"}[min(s.number(3), 3)],
			ExitCode: int(s.number(7)), Reason: s.text(10), Message: s.text(11),
			Attempt: int(s.inner(2).number(2)), Started: time.Unix(0, int64(s.number(5))), LogPath: s.text(15),
		})
	}
	return statuses, nil
}
