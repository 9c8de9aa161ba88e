package sysctld

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// FuzzParseKey: a key of a document means in a file what it means in the document.
func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"net.ipv4.ip_forward", "net/ipv4/conf/eth0.100/rp_filter", "a.b/c", "a/b.c", "..", "net./.x", "a.\xff", "-a.b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := v1alpha1.ParseSysctlKey(text)
		if err != nil {
			return
		}
		for segment := range strings.SplitSeq(string(key), "/") {
			if segment == "" || segment == "." || segment == ".." {
				t.Fatalf("%q gave the segment %q", text, segment)
			}
		}
		if back, err := v1alpha1.ParseSysctlKey(key.String()); err != nil || back != key {
			t.Fatalf("%q: %q is not the result of parsing %q: %q, %v", text, string(key), key.String(), back, err)
		}
		if simplify(v1alpha1.SysctlPath(text)) != string(key) {
			t.Fatalf("%q: a file would mean %q, not %q", text, v1alpha1.SysctlPath(text), string(key))
		}
	})
}
