package controller

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
)

// worst is a config that takes as much as it can.
type worst struct {
	streams  []string // in Secrets of objects of another group
	specs    []string
	secret   string // the value of the Secret s that specs refer to
	template string
	format   string
}

// filled repeats texts up to a size.
func filled(bytes int, of func(i int) string) string {
	var out strings.Builder
	for i := 0; out.Len() < bytes; i++ {
		out.WriteString(of(i))
	}
	return out.String()[:bytes]
}

const head = "apiVersion: example.com/v1\nkind: Test\nmetadata: {name: a%d}\nspec:"

func worstConfigs() map[string]worst {
	const mib = 1<<20 - 100
	noise := rand.New(rand.NewPCG(6, 6))
	document := func(spec string) func(i int) string {
		return func(i int) string { return fmt.Sprintf(head+spec+"\n---\n", i) }
	}
	whole := func(unit string) string {
		return fmt.Sprintf(head+" [", 0) + filled(mib, func(int) string { return unit })
	}
	structure := `{"a":[` + strings.TrimSuffix(strings.Repeat(`[],`, 190_000/3), ",") + `]}`
	var specs []string
	for range 20 {
		specs = append(specs, structure[:len(structure)/2]+"]}")
	}
	same := strings.TrimSuffix(strings.Repeat(`{"valueFrom":{"secretKeyRef":{"name":"s","key":"value"}}},`, 10_000), ",")
	return map[string]worst{
		"documents in two Secrets":  {streams: []string{filled(mib, document(" {}")), filled(mib, document(" {}"))}},
		"as many documents as may":  {streams: []string{filled(60_000, document(" {}"))}},
		"an unfinished list":        {streams: []string{whole("[")}},
		"a list of lists":           {streams: []string{whole("[], ")}},
		"strings":                   {streams: []string{whole("'',")}},
		"mappings":                  {streams: []string{whole("a: 1, ")}},
		"tags":                      {streams: []string{whole("!!str a, ")}},
		"anchors":                   {streams: []string{whole("&a a, ")}},
		"aliases":                   {streams: []string{whole("*a, ")}},
		"comments":                  {streams: []string{whole("a, # b\n")}},
		"depth":                     {streams: []string{filled(mib, document(" "+strings.Repeat("[", 60)+strings.Repeat("]", 60)))}},
		"lists of structure":        {streams: []string{filled(mib, document(" {a: ["+strings.Repeat("[], ", 30_000)+"]}"))}},
		"valid lists of structure":  {streams: []string{fmt.Sprintf(head, 0) + " {a: [" + strings.Repeat("[], ", 60_000) + "]}\n", fmt.Sprintf(head, 1) + " {a: [" + strings.Repeat("[], ", 60_000) + "]}\n"}},
		"a huge string":             {streams: []string{fmt.Sprintf(head, 0) + " {a: '" + filled(mib, func(int) string { return "x" }) + "'}\n"}},
		"a huge text of escapes":    {streams: []string{fmt.Sprintf(head, 0) + ` {a: "` + filled(mib/2*2, func(int) string { return `\n` }) + "\"}\n"}},
		"noise":                     {specs: []string{`{"a":"` + filled(mib, func(int) string { return string(rune('a' + noise.IntN(26))) }) + `"}`}, format: "unattend"},
		"structure in place":        {specs: []string{structure, structure, structure, structure}},
		"a hundred specs":           {specs: specs},
		"one Secret 10,000 times":   {specs: []string{`{"a":[` + same + `]}`}, secret: filled(mib, func(int) string { return "x" })},
		"many references":           {specs: []string{`{"a":[` + same + `]}`}, secret: "x"},
		"newlines in a Secret":      {specs: []string{`{"a":[{"valueFrom":{"secretKeyRef":{"name":"s","key":"value"}}}]}`}, secret: strings.Repeat("\n", mib)},
		"a template that encodes":   {specs: []string{`{"a":"` + strings.Repeat("x", 1<<19) + `"}`}, template: "{{ $x := machine_config }}" + strings.Repeat("{{ $y := gzipBase64 $x }}", 40)},
		"a template that quotes":    {specs: []string{`{"a":"` + strings.Repeat("<", 1<<19) + `"}`}, template: "{{ $x := machine_config }}" + strings.Repeat("{{ $x = xml $x }}{{ $x = json $x }}", 40)},
		"a template of pipes":       {specs: []string{`{}`}, template: "{{ $x := base64 ``" + strings.Repeat("|xml", mib/8) + "}}"},
		"a template of arguments":   {specs: []string{`{}`}, template: "{{ $x := base64 " + strings.Repeat("1 ", mib/4) + "}}"},
		"a template of parentheses": {specs: []string{`{}`}, template: "{{ $x := base64 " + strings.Repeat("(xml ``)", mib/32) + "}}"},
		"a template of actions":     {specs: []string{`{}`}, template: filled(mib/2, func(int) string { return "{{if ``}}{{end}}" })[:mib/32*16]},
		"a template of assignments": {specs: []string{`{}`}, template: filled(mib/2, func(int) string { return "{{$x:=``}}" })[:mib/20*10]},
	}
}

// processor is the time of processors that the process has taken, on a busy machine as on another.
func processor() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it does not fail
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// cost is the peak of the heap above the one before, and the time.
func cost(f func()) (mib int, took time.Duration) {
	debug.FreeOSMemory()
	heap := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() uint64 {
		runtimemetrics.Read(heap)
		return heap[0].Value.Uint64()
	}
	before, done, ended := read(), make(chan struct{}), make(chan struct{})
	peak := before
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
				peak = max(peak, read())
			}
		}
	}()
	began := processor()
	f()
	took = processor() - began
	close(done)
	<-ended
	return int((peak - before) >> 20), took
}

// TestWorstConfigs: no config takes more than 64 MiB, or a second of one processor that has nothing else to do.
func TestWorstConfigs(t *testing.T) { //nolint:paralleltest // it measures the process
	defer debug.SetGCPercent(debug.SetGCPercent(25)) // as the manager does
	for about, c := range worstConfigs() {
		format := bootstrap.Format{Type: c.format}
		values := map[input]string{named("Secret", "s"): c.secret}
		if c.template != "" {
			format = templated("ConfigMap", format)
			values[named("ConfigMap", "template")] = c.template
		}
		var sources []source
		for i, text := range c.streams {
			name := fmt.Sprintf("stream%d", i)
			values[named("Secret", name)] = text
			sources = append(sources, source{where: name, secret: name, placement: &bootstrap.Placement{}})
		}
		for i, text := range c.specs {
			require.True(t, json.Valid([]byte(text)), about)
			sources = append(sources, source{
				where: "spec", apiVersion: "example.com/v1", kind: "Test", name: fmt.Sprint("s", i), spec: runtime.RawExtension{Raw: []byte(text)}.Raw,
				placement: &bootstrap.Placement{},
			})
		}
		w := rendering(format, values)
		var err error
		mib, took := cost(func() {
			var documents []emit.Document
			if documents, err = w.documents(t.Context(), sources); err == nil {
				_, err = w.wrapped(t.Context(), documents, documents)
			}
		})
		text := "made"
		if err != nil {
			text = shortened(err.Error(), 160)
		}
		t.Logf("%-26s %3d MiB %8s: %s", about, mib, took.Round(time.Millisecond), text)
		assert.LessOrEqual(t, mib, 64, about)
		assert.Less(t, took, 3*time.Second, about) // a second on a machine that is not busy
	}
}
