package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

func updating(t *testing.T) bool {
	t.Helper()
	return flag.Lookup("update").Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the golden files")
	flag.Parse()
	os.Exit(m.Run())
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if updating(t) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s differs (go test -update writes it)\ngot:\n%s\nwant:\n%s", file, got, want)
	}
}

const fullSpec = `{"profiles":["kubernetes"],"modules":["nf-conntrack","overlay"],"parameters":{
	"net.ipv4.tcp_rmem":"4096 131072 6291456","net/ipv4/conf/eth0.100/rp_filter":2,"kernel.panic":10,
	"net.netfilter.nf_conntrack_max":1048576,"kernel.modprobe":""},"ignoreMissing":["net/netfilter/nf_conntrack_max"]}`

func TestRender(t *testing.T) {
	t.Parallel()
	want, violations := resolve(sysctl(t, fullSpec), profiles())
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	golden(t, "render/sysctl.conf", renderSysctl(want))
	golden(t, "render/modules.conf", renderModules(want))
}

func TestRenderedFileHasTheValuesOfTheDocument(t *testing.T) {
	t.Parallel()
	want, _ := resolve(sysctl(t, fullSpec), profiles())
	for _, rules := range []sysctld.Rules{sysctld.Systemd, sysctld.Procps} {
		rendered := renderSysctl(want)
		lines := sysctld.Parse(rendered, rules)
		if len(lines) != len(want.parameters) || bytes.Count(rendered, []byte("\n")) != len(lines)+1 {
			t.Fatalf("%d parameters, got %s", len(want.parameters), rendered)
		}
		for i, p := range want.parameters {
			if l := lines[i]; l.Key != string(p.key) || l.Value != p.value || l.IgnoreFailure != p.optional || l.Exclude {
				t.Errorf("rules %d: %+v became %+v", rules, p, l)
			}
		}
	}
}

func TestRenderNothing(t *testing.T) {
	t.Parallel()
	if renderSysctl(desired{name: "n", modules: []string{"m"}}) != nil || renderModules(desired{name: "n"}) != nil {
		t.Error("an empty list has no file")
	}
}
