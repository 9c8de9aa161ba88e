package cri

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestAnAnswerThatIsCutIsRefused(t *testing.T) {
	t.Parallel()
	whole, err := proto.Marshal(&runtime.VersionResponse{Version: "0.1.0", RuntimeName: "fake"})
	require.NoError(t, err)
	var m message
	require.NoError(t, codec{}.Unmarshal(whole, &m))
	require.Equal(t, "fake", m.text(2))
	require.Error(t, codec{}.Unmarshal(whole[:len(whole)-1], &m))
	require.Error(t, codec{}.Unmarshal(whole[:len(whole)-4], &m))
	require.Error(t, codec{}.Unmarshal(whole, &runtime.VersionResponse{}))
	_, err = codec{}.Marshal(&runtime.VersionResponse{})
	require.Error(t, err)
}

// FuzzMessage: what protobuf reads of an answer is read here too.
func FuzzMessage(f *testing.F) {
	for _, m := range []*runtime.ContainerStatus{
		{},
		{Id: "a", State: runtime.ContainerState_CONTAINER_EXITED, ExitCode: -1, StartedAt: 5, LogPath: "/a", Metadata: &runtime.ContainerMetadata{Attempt: 4}},
		{Reason: "Error", Message: "b", Labels: map[string]string{"a": "b"}, Mounts: []*runtime.Mount{{HostPath: "/a"}, {HostPath: "/b"}}},
	} {
		data, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(protowire.AppendVarint([]byte{0x3a}, 1<<40))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours message
		refused := codec{}.Unmarshal(data, &ours)
		var theirs runtime.ContainerStatus
		if err := proto.Unmarshal(data, &theirs); err != nil {
			return // protobuf refuses the types of fields too
		}
		require.NoError(t, refused)
		require.Equal(t, theirs.GetReason(), ours.text(10))
		require.Equal(t, theirs.GetMessage(), ours.text(11))
		require.Equal(t, theirs.GetExitCode(), int32(ours.number(7))) //nolint:gosec // as protobuf reads it
		require.Equal(t, len(theirs.GetMounts()), len(ours.all(14)))
	})
}
