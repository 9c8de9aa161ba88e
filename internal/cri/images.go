package cri

import (
	"context"
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

// ofImage is a request that names an image.
func ofImage(image string) message { return message(nil).with(1, message(nil).with(1, []byte(image))) }

// PullImage pulls an image and returns the reference that the runtime gives to it. The runtime decides from where, by
// its configuration of registries.
func (c *Client) PullImage(ctx context.Context, image string, auth Auth) (ref string, err error) {
	request := ofImage(image)
	if auth.data != nil {
		who := auth.reveal()
		request = request.with(2, message(nil).with(1, []byte(who.user)).with(2, []byte(who.password)))
	}
	r, err := c.call(ctx, "ImageService/PullImage", request)
	return r.text(1), err
}

// ImageStatus looks for an image among those that the runtime has; ok is false when it has it not.
func (c *Client) ImageStatus(ctx context.Context, image string) (_ Image, ok bool, err error) {
	r, err := c.call(ctx, "ImageService/ImageStatus", ofImage(image))
	if err != nil {
		return Image{}, false, err
	}
	i := r.inner(1)
	if i == nil {
		return Image{}, false, nil
	}
	return Image{ID: i.text(1), Tags: i.texts(2), Digests: i.texts(3), Size: i.number(4), Pinned: i.number(8) == 1}, true, nil
}

// RemoveImage removes an image. One that the runtime does not have is no error.
func (c *Client) RemoveImage(ctx context.Context, image string) error {
	_, err := c.call(ctx, "ImageService/RemoveImage", ofImage(image))
	return err
}

// ImageDirectories returns the directories in which the runtime keeps images, if it names them.
func (c *Client) ImageDirectories(ctx context.Context) ([]string, error) {
	r, err := c.call(ctx, "ImageService/ImageFsInfo", nil)
	var directories []string
	for _, system := range r.all(1) {
		if at := system.inner(2).text(1); at != "" {
			directories = append(directories, at)
		}
	}
	return directories, err
}
