package document

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// largeStream is about 10 MiB in 4,000 documents.
func largeStream() string {
	var text strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&text, "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata:\n  name: node-%d\n  timeout: 5m\nspec:\n  provider: procfs\n  parameters:\n", i)
		for j := range 50 {
			fmt.Fprintf(&text, "    net.ipv4.conf.eth%d.rp_filter: %d # a comment\n", j, j)
		}
	}
	return text.String()
}

func BenchmarkDecode(b *testing.B) {
	text := largeStream()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		stream := decode(b, text)
		if len(stream.Documents) != 4000 {
			b.Fatal(len(stream.Documents))
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	d := decode(b, largeStream()).Documents[0]
	for b.Loop() {
		if len(jsonOf(b, d)) == 0 {
			b.Fatal("nothing")
		}
	}
}

func BenchmarkLocate(b *testing.B) {
	documents := decode(b, largeStream()).Documents
	i := 0
	for b.Loop() {
		d := documents[i%len(documents)]
		if d.Locate("spec.parameters").Line == 0 {
			b.Fatal("nowhere")
		}
		i++
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	data := []byte(jsonOf(b, decode(b, largeStream()).Documents[0]))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var into map[string]any
		if v := Unmarshal(data, &into); len(v) > 0 {
			b.Fatal(v)
		}
	}
}

// What a decoded stream keeps: the text, the JSON and little else.
func TestMemoryOfDecodedStream(t *testing.T) {
	text := largeStream()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	stream := decode(t, text)
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	if limit := int64(4 * len(text)); kept > limit {
		t.Errorf("%d MiB of text keep %d MiB", len(text)>>20, kept>>20)
	}
	runtime.KeepAlive(stream)
}
