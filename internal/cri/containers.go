package cri

import (
	"context"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Container is a container, or the sandbox of a pod, that the runtime lists.
type Container struct {
	ID      string
	Name    string
	Running bool
}

// Containers lists those that the kubelet made, running or not.
func (c *Client) Containers(ctx context.Context) ([]Container, error) {
	r, err := c.runtime.ListContainers(ctx, &runtime.ListContainersRequest{})
	if err != nil {
		return nil, err
	}
	var all []Container
	for _, one := range r.GetContainers() {
		running := one.GetState() == runtime.ContainerState_CONTAINER_RUNNING
		all = append(all, Container{ID: one.GetId(), Name: one.GetMetadata().GetName(), Running: running})
	}
	return all, nil
}

// Sandboxes lists the sandboxes of pods, ready or not; the name is NAMESPACE/POD.
func (c *Client) Sandboxes(ctx context.Context) ([]Container, error) {
	r, err := c.runtime.ListPodSandbox(ctx, &runtime.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	var all []Container
	for _, one := range r.GetItems() {
		name := one.GetMetadata().GetNamespace() + "/" + one.GetMetadata().GetName()
		all = append(all, Container{ID: one.GetId(), Name: name, Running: one.GetState() == runtime.PodSandboxState_SANDBOX_READY})
	}
	return all, nil
}
