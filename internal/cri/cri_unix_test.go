//go:build !windows

package cri_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/machineadm/machineadm/internal/cri"
)

func TestDialRefuses(t *testing.T) {
	t.Parallel()
	missing, dead := socket(t), socket(t)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: dead})
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, listener.Close())
	_, err = cri.Dial(t.Context(), at(missing))
	require.ErrorIs(t, err, cri.ErrDown)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = cri.Dial(t.Context(), at(dead))
	require.ErrorIs(t, err, cri.ErrDown)
	require.ErrorContains(t, err, "connection refused")
	_, err = cri.Dial(t.Context(), func(context.Context) (net.Conn, error) { return nil, fs.ErrPermission })
	require.ErrorIs(t, err, fs.ErrPermission)
	require.NotErrorIs(t, err, cri.ErrDown)
}

func TestDialHonorsTheContext(t *testing.T) {
	t.Parallel()
	path := socket(t)
	serve(t, path, &daemon{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cri.Dial(ctx, at(path)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	c := start(t, &daemon{})
	version, err := c.Version(t.Context())
	if want := (cri.Version{Runtime: "fake", Version: "v9.8.7", API: "v1"}); err != nil || version != want {
		t.Errorf("version %+v, %v, want %+v", version, err, want)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	conditions := []*runtime.RuntimeCondition{
		{Type: "RuntimeReady", Status: true},
		{Type: "Other", Status: false},
		{Type: "NetworkReady", Status: false, Reason: "NetworkPluginNotReady", Message: "cni plugin not initialized"},
	}
	large := strings.Repeat("x", 6<<20)
	c := start(t, &daemon{status: func(_ context.Context, r *runtime.StatusRequest) (*runtime.StatusResponse, error) {
		answer := &runtime.StatusResponse{Status: &runtime.RuntimeStatus{Conditions: conditions}}
		if r.GetVerbose() {
			answer.Info = map[string]string{"config": `{"a": 1}`, "large": large}
		}
		return answer, nil
	}})
	s, err := c.Status(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if !s.RuntimeReady.Met || s.NetworkReady.Met || s.NetworkReady.Reason != "NetworkPluginNotReady" || s.NetworkReady.Message != "cni plugin not initialized" {
		t.Errorf("runtime %+v, network %+v", s.RuntimeReady, s.NetworkReady)
	}
	if text, ok := s.Info.Reveal("config"); !ok || text != `{"a": 1}` {
		t.Errorf("config %q, %v", text, ok)
	}
	if text, _ := s.Info.Reveal("large"); text != large {
		t.Errorf("%d bytes of information, want %d", len(text), len(large))
	}
	if keys := s.Info.Keys(); len(keys) != 2 {
		t.Errorf("keys %q", keys)
	}
	s, err = c.Status(t.Context(), false)
	if err != nil || len(s.Info.Keys()) != 0 {
		t.Errorf("without verbose: %q, %v", s.Info.Keys(), err)
	}
	if _, ok := s.Info.Reveal("config"); ok {
		t.Error("there is information that was not asked for")
	}
	conditions = nil
	if s, err = c.Status(t.Context(), false); err != nil || s.RuntimeReady.Met || s.NetworkReady.Met {
		t.Errorf("conditions that are not named are met: %+v, %v", s, err)
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	image := &runtime.Image{Id: "sha256:1", RepoTags: []string{"r.test/a:1"}, RepoDigests: []string{"r.test/a@sha256:2"}, Size: 5, Pinned: true}
	c := start(t, &daemon{images: map[string]*runtime.Image{"r.test/a:1": image}})
	got, ok, err := c.ImageStatus(t.Context(), "r.test/a:1")
	if err != nil || !ok || got.ID != "sha256:1" || got.Size != 5 || !got.Pinned ||
		!slices.Equal(got.Tags, image.GetRepoTags()) || !slices.Equal(got.Digests, image.GetRepoDigests()) {
		t.Errorf("image %+v, %v, %v", got, ok, err)
	}
	if err := c.RemoveImage(t.Context(), "r.test/a:1"); err != nil {
		t.Error(err)
	}
	if got, ok, err := c.ImageStatus(t.Context(), "r.test/a:1"); err != nil || ok {
		t.Errorf("a removed image: %+v, %v, %v", got, ok, err)
	}
	if got, err := c.ImageDirectories(t.Context()); err != nil || !slices.Equal(got, []string{"/var/lib/images"}) {
		t.Errorf("images are in %q, %v", got, err)
	}
}

func TestPullImageSaysWhoPulls(t *testing.T) {
	t.Parallel()
	var asked *runtime.PullImageRequest
	c := start(t, &daemon{pull: func(r *runtime.PullImageRequest) (*runtime.PullImageResponse, error) {
		asked = r
		return &runtime.PullImageResponse{ImageRef: "sha256:1"}, nil
	}})
	ref, err := c.PullImage(t.Context(), "r.test/a:1", cri.NewAuth("robot", "c4n4ry"))
	if err != nil || ref != "sha256:1" || asked.GetImage().GetImage() != "r.test/a:1" {
		t.Errorf("%q, %v, of %q", ref, err, asked.GetImage().GetImage())
	}
	if asked.GetAuth().GetUsername() != "robot" || asked.GetAuth().GetPassword() != "c4n4ry" {
		t.Error("another user asked, or with another password")
	}
	if _, err := c.PullImage(t.Context(), "r.test/a:1", cri.Auth{}); err != nil || asked.GetAuth() != nil {
		t.Errorf("nobody: %v, with authentication: %v", err, asked.GetAuth() != nil)
	}
}

func TestContainerStatuses(t *testing.T) {
	t.Parallel()
	c := start(t, &daemon{})
	all, err := c.ContainerStatuses(t.Context(), "kube-apiserver-a", "kube-apiserver")
	require.NoError(t, err)
	status := func(id string) cri.ContainerStatus {
		return cri.ContainerStatus{
			State: "exited", ExitCode: 1, Reason: "Error", Message: id, Attempt: 4, Started: time.Unix(5, 6), LogPath: "/var/log/pods/a/4.log",
		}
	}
	require.Equal(t, []cri.ContainerStatus{status("kube-apiserver"), status("old")}, all, "without the one that was removed meanwhile")
	all, err = c.ContainerStatuses(t.Context(), "absent", "etcd")
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestErrorsSayWhatTheyMean(t *testing.T) {
	t.Parallel()
	c := start(t, &daemon{
		pull: func(*runtime.PullImageRequest) (*runtime.PullImageResponse, error) {
			return nil, status.Error(codes.Unavailable, "the registry is away")
		},
		status: func(ctx context.Context, _ *runtime.StatusRequest) (*runtime.StatusResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	_, err := c.PullImage(t.Context(), "r.test/a:1", cri.Auth{})
	if err == nil || !strings.HasPrefix(err.Error(), "cri PullImage: ") || !strings.Contains(err.Error(), "the registry is away") ||
		status.Code(err) != codes.Unavailable || errors.Is(err, cri.ErrDown) {
		t.Errorf("a registry that is away: %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Status(ctx, false); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "cri Status: ") {
		t.Errorf("a deadline: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	canceled := start(t, &daemon{status: func(ctx context.Context, _ *runtime.StatusRequest) (*runtime.StatusResponse, error) {
		stop()
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if _, err := canceled.Status(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that was canceled: %v", err)
	}

	_, err = start(t, nil).Version(t.Context())
	if !errors.Is(err, cri.ErrNotServed) || errors.Is(err, cri.ErrDown) || !strings.HasPrefix(err.Error(), "cri Version: ") {
		t.Errorf("a daemon without the interface: %v", err)
	}
}

func TestClientFollowsARestart(t *testing.T) {
	t.Parallel()
	path := socket(t)
	stop := serve(t, path, &daemon{})
	c := dial(t, path)
	if _, err := c.Version(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := c.Version(t.Context()); !errors.Is(err, cri.ErrDown) {
		t.Errorf("a daemon that went down: %v", err)
	}
	serve(t, path, &daemon{})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, err := c.Version(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, cri.ErrDown) || time.Now().After(deadline) {
			t.Fatalf("a daemon that is up again: %v", err)
		}
	}
}
