package tomledit

import (
	"fmt"
	"strings"
	"testing"
)

// large is a document of about the given size, as containerd writes them.
func large(size int) []byte {
	var text strings.Builder
	text.WriteString("version = 3\n\n[plugins]\n")
	for i := 0; text.Len() < size; i++ {
		fmt.Fprintf(&text, "\n  [plugins.'io.containerd.test.v1.p%d']\n    # A comment.\n    path = '/var/lib/p%d' # why\n    count = %d\n"+
			"    list = ['a', 'b', %d]\n    inline = { a = 1, b.c = 'x' }\n\n    [plugins.'io.containerd.test.v1.p%d'.options]\n      on = true\n", i, i, i, i, i)
	}
	return []byte(text.String())
}

func BenchmarkParseAndSet(b *testing.B) {
	for name, size := range map[string]int{"10KiB": 10 << 10, "100KiB": 100 << 10, "1MiB": 1 << 20} {
		data := large(size)
		for _, key := range []string{"count", "new"} {
			b.Run(name+"/"+key, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for b.Loop() {
					d, err := Parse(data)
					if err != nil {
						b.Fatal(err)
					}
					if err := d.Set([]string{"plugins", "io.containerd.test.v1.p5", key}, int64(-1)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// A document of one large table is where looking for keys one by one would show.
func BenchmarkFlat(b *testing.B) {
	for _, keys := range []int{1000, 40000} {
		var text strings.Builder
		for i := range keys {
			fmt.Fprintf(&text, "key_number_%d = %d\n", i, i)
		}
		data := []byte(text.String())
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Parse(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
