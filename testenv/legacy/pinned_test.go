package legacy

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// pin is for the day on which another release is kept. Nothing else changes what was.
var pin = flag.Bool("pin", false, "write down what yesterday's plugin and wire are")

// TestYesterdayStaysAsItWas: what others have installed is not mended, and neither is the copy of it here.
func TestYesterdayStaysAsItWas(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := filepath.WalkDir(before, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if name == filepath.Join(before, "go.mod") && strings.Contains(string(data), "machineadm/machineadm") {
			t.Errorf("%s names the checkout: then a change of that changes yesterday", name)
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(data), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "v1alpha1.sha256", out.String(), *pin)
}

// TestWireOnlyGrows: what yesterday's messages had, today's have, with the same numbers.
func TestWireOnlyGrows(t *testing.T) {
	t.Parallel()
	today := wire(pb.File_contract_pluginv1_pb_plugin_proto)
	const name = "v1alpha1.wire"
	if *pin {
		golden(t, name, strings.Join(today, "\n")+"\n", true)
	}
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	yesterday := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(yesterday) < 80 {
		t.Fatalf("%d lines: the test compares next to nothing", len(yesterday))
	}
	for _, line := range yesterday {
		if !slices.Contains(today, line) {
			t.Errorf("today's wire is without %s", line)
		}
	}
}

// wire lists the calls, fields and values of enumerations of a file, one a line.
func wire(file protoreflect.FileDescriptor) []string {
	var out []string
	for i := range file.Services().Len() {
		methods := file.Services().Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			out = append(out, fmt.Sprintf("rpc %s(%s) returns (%s), streams %v and %v",
				m.FullName(), m.Input().FullName(), m.Output().FullName(), m.IsStreamingClient(), m.IsStreamingServer()))
		}
	}
	for i := range file.Messages().Len() {
		fields := file.Messages().Get(i).Fields()
		for j := range fields.Len() {
			f := fields.Get(j)
			of := f.Kind().String()
			switch {
			case f.Message() != nil:
				of = string(f.Message().FullName())
			case f.Enum() != nil:
				of = string(f.Enum().FullName())
			}
			out = append(out, fmt.Sprintf("field %s = %d, %s %s", f.FullName(), f.Number(), f.Cardinality(), of))
		}
	}
	for i := range file.Enums().Len() {
		values := file.Enums().Get(i).Values()
		for j := range values.Len() {
			v := values.Get(j)
			out = append(out, fmt.Sprintf("value %s.%s = %d", file.Enums().Get(i).FullName(), v.Name(), v.Number()))
		}
	}
	slices.Sort(out)
	return out
}
