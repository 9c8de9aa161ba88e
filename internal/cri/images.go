package cri

import (
	"context"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Auth is who pulls an image. The zero Auth is nobody. It shows nothing of itself to fmt, to a log or to a marshaller.
type Auth struct{ hidden[login] }

type login struct{ user, password string }

// NewAuth is a user with a password.
func NewAuth(user, password string) Auth { return Auth{hide(login{user, password})} }

// Image is one that the runtime has.
type Image struct {
	ID      string   // the digest of its configuration
	Tags    []string // full references with a tag
	Digests []string // full references with a digest
	Size    uint64   // in bytes, as the runtime counts
	Pinned  bool     // not to be removed by the kubelet
}

// PullImage pulls an image and returns the reference that the runtime gives to it. The runtime decides from where, by
// its configuration of registries.
func (c *Client) PullImage(ctx context.Context, image string, auth Auth) (ref string, err error) {
	request := &runtime.PullImageRequest{Image: &runtime.ImageSpec{Image: image}}
	if auth.data != nil {
		who := auth.reveal()
		request.Auth = &runtime.AuthConfig{Username: who.user, Password: who.password}
	}
	r, err := c.images.PullImage(ctx, request)
	if err != nil {
		return "", err
	}
	return r.GetImageRef(), nil
}

// ImageStatus looks for an image among those that the runtime has; ok is false when it has it not.
func (c *Client) ImageStatus(ctx context.Context, image string) (_ Image, ok bool, err error) {
	r, err := c.images.ImageStatus(ctx, &runtime.ImageStatusRequest{Image: &runtime.ImageSpec{Image: image}})
	if err != nil {
		return Image{}, false, err
	}
	i := r.GetImage()
	if i == nil {
		return Image{}, false, nil
	}
	return Image{ID: i.GetId(), Tags: i.GetRepoTags(), Digests: i.GetRepoDigests(), Size: i.GetSize(), Pinned: i.GetPinned()}, true, nil
}

// RemoveImage removes an image. One that the runtime does not have is no error.
func (c *Client) RemoveImage(ctx context.Context, image string) error {
	_, err := c.images.RemoveImage(ctx, &runtime.RemoveImageRequest{Image: &runtime.ImageSpec{Image: image}})
	return err
}

// ImageDirectories returns the directories in which the runtime keeps images, if it names them.
func (c *Client) ImageDirectories(ctx context.Context) ([]string, error) {
	r, err := c.images.ImageFsInfo(ctx, &runtime.ImageFsInfoRequest{})
	var directories []string
	for _, system := range r.GetImageFilesystems() {
		if at := system.GetFsId().GetMountpoint(); at != "" {
			directories = append(directories, at)
		}
	}
	return directories, err
}
