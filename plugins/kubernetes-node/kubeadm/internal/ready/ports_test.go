package ready

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestListening(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []int{10250, 6443}, listening([]byte("  sl  local_address rem_address   st\n"+
		"   0: 00000000:280A 00000000:0000 0A 0\n"+
		"   1: 0100007F:192B 0100007F:1F90 01 0\n"+
		"   2: 00000000000000000000000000000000:192B 00000000000000000000000000000000:0000 0A 0\n"+
		"   3: 00000000:none 00000000:0000 0A 0\n   4: 00000000 00000000 0A 0\n")))
}

func FuzzListening(f *testing.F) {
	f.Add([]byte("   0: 00000000:280A 00000000:0000 0A 0\n"))
	f.Add([]byte("0: :FFFFF : 0A\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, port := range listening(text) {
			if port < 0 || port > 65535 {
				t.Errorf("port %d", port)
			}
		}
	})
}
