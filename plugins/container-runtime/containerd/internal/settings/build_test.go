package settings

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
)

// said are the settings of a document whose path has a word in it, as PATH=VALUE.
func said(t *testing.T, d Desired, r Release, word string) string {
	t.Helper()
	settings, violations := d.Settings(r)
	if len(violations) > 0 {
		t.Errorf("%s: %+v", r, violations)
	}
	var all []string
	for _, s := range settings {
		if !strings.Contains(Dotted(s.Path), word) {
			continue
		}
		value, err := json.Marshal(s.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Join(s.Path[max(0, len(s.Path)-2):], ".")+"="+string(value))
	}
	return strings.Join(all, " ")
}

// TestKeysByRelease: what moved, came or went.
func TestKeysByRelease(t *testing.T) {
	t.Parallel()
	old, split := Release{1, 6, 39}, Release{2, 0, 0}
	for _, c := range []struct {
		spec, word string
		release    Release
		want       string
	}{
		{`{"cni":{"binDirs":["/a"]}}`, "bin_dir", old, `cni.bin_dir="/a"`},
		{`{"cni":{"binDirs":["/a"]}}`, "bin_dir", Release{2, 0, 7}, `cni.bin_dir="/a"`},
		{`{"cni":{"binDirs":["/a","/b"]}}`, "bin_dir", Release{2, 1, 0}, `cni.bin_dirs=["/a","/b"]`},
		{`{"cdi":{"enabled":false}}`, "cdi", old, ``},
		{`{"cdi":{"enabled":true}}`, "cdi", Release{1, 7, 0}, CRIPlugin + `.enable_cdi=true`},
		{`{"cdi":{"enabled":false}}`, "cdi", Release{2, 3, 9}, RuntimePlugin + `.enable_cdi=false`},
		{`{"cdi":{"enabled":true,"specDirs":["/a"]}}`, "cdi", Release{2, 4, 0}, RuntimePlugin + `.cdi_spec_dirs=["/a"]`},
		{`{"nri":{"enabled":false}}`, "nri", old, ``},
		{`{"nri":{"enabled":false}}`, "nri", Release{1, 7, 0}, nriPlugin + `.disable=true`},
		{`{"maxConcurrentDownloads":3}`, "max", old, CRIPlugin + `.max_concurrent_downloads=3`},
		{`{"maxConcurrentDownloads":5}`, "max", split, ImagesPlugin + `.max_concurrent_downloads=5`},
		{`{"maxConcurrentDownloads":5}`, "max", Release{2, 1, 0}, transferPlugin + `.max_concurrent_downloads=5`},
		{`{"maxConcurrentDownloads":5,"snapshotter":"overlayfs"}`, "max", Release{2, 4, 0}, transferPlugin + `.max_concurrent_downloads=5`},
		{
			`{"maxConcurrentDownloads":5,"snapshotter":"native"}`, "max",
			Release{2, 1, 0},
			ImagesPlugin + `.max_concurrent_downloads=5 ` + transferPlugin + `.max_concurrent_downloads=5`,
		},
		{
			`{"maxConcurrentDownloads":5,"registries":{"r.test":{"auth":{"identityToken":{"value":"x"}}}}}`, "max",
			Release{2, 6, 0},
			ImagesPlugin + `.max_concurrent_downloads=5 ` + transferPlugin + `.max_concurrent_downloads=5`,
		},
		{`{"snapshotter":"native"}`, "images", split, ImagesPlugin + `.snapshotter="native"`},
		{`{"snapshotter":"overlayfs"}`, "images", Release{2, 1, 0}, ImagesPlugin + `.snapshotter="overlayfs"`},
		{`{"snapshotter":"native"}`, "images", Release{2, 1, 0}, ImagesPlugin + `.snapshotter="native" ` + ImagesPlugin + `.use_local_image_pull=true`},
		{`{"oomScore":-5}`, "oom", old, `oom_score=-5`},
		{
			`{"registries":{"` + hub() + `":{"auth":{"username":"u","password":{"value":"p"}}}}}`, "registry-1", split,
			`auth.password="p" auth.username="u"`,
		},
		{`{"registries":{"r.test":{"auth":{"username":"u","password":{"value":"p"}}}}}`, "config_path", split, ``},
		{`{"registries":{"r.test":{"server":"http://r.test"}}}`, "config_path", split, `registry.config_path="/etc/containerd/certs.d"`},
	} {
		if got := said(t, wanted(t, "linux", c.spec), c.release, c.word); got != c.want {
			t.Errorf("%s %s:\n%s, want\n%s", c.release, c.spec, got, c.want)
		}
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec    string
		release Release
		want    []string
	}{
		{`{"cdi":{"enabled":true,"specDirs":["/a"]},"nri":{"enabled":true}}`, Release{1, 6, 39}, []string{
			"spec.cdi.enabled: came with 1.7", "spec.cdi.specDirs: came with 1.7", "spec.nri.enabled: came with 1.7",
		}},
		{`{"cdi":{"enabled":true},"nri":{"enabled":true}}`, Release{1, 7, 0}, nil},
		{`{"cdi":{"enabled":false}}`, Release{2, 3, 9}, nil},
		{`{"cdi":{"enabled":false}}`, Release{2, 4, 0}, []string{"spec.cdi.enabled: always on"}},
		{`{"cni":{"binDirs":["/a","/b"]}}`, Release{2, 0, 7}, []string{"spec.cni.binDirs: came with 2.1"}},
		{`{"snapshotter":"aufs"}`, Release{1, 7, 0}, nil},
		{`{"snapshotter":"aufs"}`, Release{2, 0, 0}, []string{"spec.snapshotter: no such snapshotter"}},
		{`{"runtimes":{"a":{"type":"io.containerd.runc.v1","options":{"CriuPath":"/a","TaskApiVersion":1}}}}`, Release{1, 7, 0}, []string{
			`spec.runtimes.a.options.TaskApiVersion: came with 2.0`,
		}},
		{`{"runtimes":{"a":{"type":"io.containerd.runc.v1","options":{"CriuPath":"/a","TaskApiVersion":1}}}}`, Release{2, 0, 0}, []string{
			`spec.runtimes.a.type: no such type`, `spec.runtimes.a.options.CriuPath: no such option`,
		}},
		{`{"registries":{"_default":{"skipVerify":true}}}`, Release{1, 7, 99}, []string{`spec.registries._default: needs a host`}},
		{`{"registries":{"_default":{"skipVerify":true}}}`, Release{2, 0, 0}, nil},
		{`{"registries":{"_default":{"server":"https://m.test","skipVerify":true}}}`, Release{1, 6, 0}, nil},
		{`{"registries":{"r.test":{"dialTimeout":"1s","mirrors":[{"url":"https://m.test","dialTimeout":"1s"}]}}}`, Release{2, 0, 9}, []string{
			`spec.registries["r.test"].dialTimeout: came with 2.1`, `spec.registries["r.test"].mirrors[0].dialTimeout: came with 2.1`,
		}},
		{`{"registries":{"r.test":{"server":"https://m.test","mirrors":[{"url":"https://m.test","dialTimeout":"1s"}]}}}`, Release{2, 0, 9}, []string{
			`spec.registries["r.test"].mirrors[0].dialTimeout: came with 2.1`,
		}},
		{`{"registries":{"r.test":{"auth":{"identityToken":{"value":"x"}}}}}`, Release{2, 6, 9}, nil},
		{`{"registries":{"r.test":{"auth":{"identityToken":{"value":"x"}}}}}`, Release{2, 7, 0}, []string{`spec.registries["r.test"].auth: no credentials`}},
	} {
		compare(t, c.release.String()+" "+c.spec, wanted(t, "linux", c.spec).Unsupported(c.release), c.want)
	}
	d := wanted(t, "windows", `{"cgroupDriver":"systemd","oomScore":1,"cdi":{"specDirs":["C:\\a"]},"nri":{"enabled":true},"trustedCAs":"@CA@",
		"proxy":{"httpSecret":{"value":"http://u:c4n4ry@p.test"},"httpsSecret":{"value":"http://p.test"}},
		"runtimes":{"runc":{"cgroupDriver":"systemd","baseSpec":{"rlimits":{"RLIMIT_CORE":{"soft":0,"hard":0}}}}}}`)
	compare(t, "windows", d.Unsupported(Release{2, 1, 0}), []string{
		"spec.cgroupDriver: Windows", "spec.oomScore: Windows", "spec.cdi: Windows", "spec.nri: Windows", "spec.trustedCAs: Windows",
		"spec.proxy.httpSecret: every user of the machine", "spec.proxy.httpsSecret: every user of the machine",
		`spec.runtimes.runc.cgroupDriver: Windows`, `spec.runtimes.runc.baseSpec: Windows`,
	})
	auth := wanted(t, "linux", `{"registries":{"r.test":{"auth":{"identityToken":{"value":"x"}}}}}`).Unsupported(Release{2, 7, 0})
	if len(auth) != 1 || !strings.Contains(auth[0].Hint, "imagePullSecrets") || !strings.Contains(auth[0].Hint, "headers") {
		t.Errorf("the alternative is not named: %+v", auth)
	}
}

// TestPatchKeys: a value with which containerd does not start, or starts without a plugin, is refused, and a key that it ignores has a warning.
// testenv/containerd compares the table of keys with the real containerd.
func TestPatchKeys(t *testing.T) {
	t.Parallel()
	const runtime, images = "plugins.'" + RuntimePlugin + "'.", "plugins.'" + ImagesPlugin + "'."
	for text, want := range map[string]string{
		runtime + "max_container_log_line_size = 32768":                                           "",
		runtime + "max_container_log_line_size = '32768'":                                         "error sets .*, which gets a value of another type",
		runtime + "max_container_log_size = 1":                                                    "warning sets .*, which containerd does not have, and ignores: remove it",
		runtime + "enable_selinux = 'true'":                                                       "error sets .*, which gets a value of another type",
		runtime + "containerd.runtimes.kata.privileged_without_host_devices = true":               "",
		runtime + "containerd.runtimes.kata.runtime_tipe = 'x'":                                   "warning .*did you mean runtime_type",
		runtime + "containerd.runtimes.runc.options.SystemdCgroup = 'true'":                       "error sets .*, which gets a value of another type",
		runtime + "containerd.runtimes.x.options.ConfigPath = '/x'":                               "",
		images + "image_pull_progress_timeout = '5m0s'":                                           "",
		images + "image_pull_progress_timeout = '5'":                                              "error .*which gets a value of another type",
		"plugins.'io.containerd.grpc.v1.cri'.stats_collect_period = 10":                           "",
		"plugins.'io.containerd.gc.v1.scheduler'.pause_threshold = 1":                             "",
		"plugins.'io.containerd.gc.v1.scheduler'.schedule_delay = 5":                              "error .*which gets a value of another type",
		"plugins.'com.example.site.v1.x'.anything = 5":                                            "",
		"plugins.cri.enable_selinux = true":                                                       "error sets .*, which is in the table of no plugin",
		"grpc.max_recv_message_size = '16M'":                                                      "error .*which gets a value of another type",
		"debug.level = 'verbose'":                                                                 "error .*which gets a value of another type",
		"timeouts.'io.containerd.timeout.shim.cleanup' = '5s'":                                    "",
		"timeouts.'io.containerd.timeout.shim.cleanup' = 5":                                       "error .*which gets a value of another type",
		"disabled_plugins = ['cri']":                                                              "error .*which gets a value of another type",
		"disabled_plugins = ['io.containerd.grpc.v1.cri']":                                        "warning sets disabled_plugins to a list with the plugin by which",
		"disabled_plugins = ['io.containerd.cri.v1.runtime']":                                     "warning sets disabled_plugins to a list with the plugin by which",
		"disabled_plugins = ['io.containerd.snapshotter.v1.btrfs']":                               "",
		"proxy_plugins.stargz = {type = 'snapshotter', address = '/run/a.sock'}":                  "warning sets proxy_plugins.stargz.type, of which containerd makes no plugin",
		"proxy_plugins.stargz = {type = 'snapshot'}":                                              "warning sets proxy_plugins.stargz.type without its address",
		runtime + "cni.ip_pref = 'ipv6-only'":                                                     "warning sets .*ip_pref, for which containerd takes ipv4",
		runtime + "cni.ip_pref = 'ipv6'":                                                          "",
		"proxy_plugins.stargz = {type = 'snapshot', address = '/run/a.sock'}":                     "",
		"proxy_plugins.stargz = {type = 'io.containerd.snapshotter.v1', address = '/run/a.sock'}": "",
		"metric.address = 'x'":                                                                    "warning .*did you mean metrics",
		"oom_scores = 1":                                                                          "warning .*did you mean oom_score",
	} {
		r := resolver{}
		r.patch("spec.providerConfig.patches[0]", text)
		got := ""
		for _, v := range r.violations {
			got += "error " + v.Message
		}
		for _, w := range r.warnings {
			got += "warning " + w.Message
		}
		if want == "" && got != "" || want != "" && !regexp.MustCompile("^"+want).MatchString(got) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func patches(t *testing.T, more string, fragments ...string) Desired {
	t.Helper()
	list, err := json.Marshal(fragments)
	if err != nil {
		t.Fatal(err)
	}
	return wanted(t, "linux", fmt.Sprintf(`{%s"providerConfig":{"patches":%s}}`, more, list))
}

func TestPatches(t *testing.T) {
	t.Parallel()
	d := patches(
		t, `"logLevel":"info",`,
		"[debug]\nlevel = 'debug'\n[a]\nb = {c = 1, d = [{e = 2.5}]}",
		"version = 2\na.b.c = 2", "version = 3\na.b.c = 3",
	)
	if got := said(t, d, Release{1, 7, 0}, ""); got != `b.c=2 b.d=[{"e":2.5}] debug.level="debug"` {
		t.Errorf("1.7: %s", got)
	}
	if got := said(t, d, Release{2, 0, 0}, "a."); got != `b.c=3 b.d=[{"e":2.5}]` {
		t.Errorf("2.0: %s", got)
	}
	warnings := d.Overridden(Release{2, 0, 0})
	if len(warnings) != 1 || warnings[0].Field != "spec.providerConfig.patches[0]" || !strings.Contains(warnings[0].Message, "debug.level and so wins over spec.logLevel") {
		t.Errorf("warnings %+v", warnings)
	}
	for _, c := range []struct {
		d       Desired
		release Release
		want    []string
	}{
		{patches(t, `"logLevel":"info",`, "debug = 'x'"), Release{2, 0, 0}, []string{"spec.providerConfig.patches[0]: sets debug, and spec.logLevel sets debug.level"}},
		{patches(t, `"logLevel":"info",`, "debug.level.x = 1"), Release{2, 0, 0}, []string{"spec.providerConfig.patches[0]: sets debug.level.x"}},
		{patches(t, "", "a = 1", "a.b = 1"), Release{2, 0, 0}, []string{"spec.providerConfig.patches[1]: sets a.b, and spec.providerConfig.patches[0] sets a"}},
		{patches(t, "", "plugins.'"+CRIPlugin+"'.enable_selinux = true"), Release{2, 3, 0}, []string{"spec.providerConfig.patches[0]: containerd 2.3.0 does not read"}},
		{patches(t, "", "plugins.'"+RuntimePlugin+"'.enable_selinux = true"), Release{1, 7, 0}, []string{"spec.providerConfig.patches[0]: containerd 1.7.0 does not read"}},
		{patches(t, "", "plugins.'"+CRIPlugin+"'.stream_server_port = '1'"), Release{2, 3, 0}, nil},
		{patches(t, "", "version = 2\nplugins.'"+CRIPlugin+"'.enable_selinux = true"), Release{2, 3, 0}, nil},
	} {
		_, violations := c.d.Settings(c.release)
		compare(t, c.release.String(), violations, c.want)
	}
}

func TestDotted(t *testing.T) {
	t.Parallel()
	if got := Dotted([]string{"a-b_1", "c.d", "", `"`}); got != `a-b_1."c.d".""."\""` {
		t.Errorf("got %s", got)
	}
}

// TestSettingsHavePlacesOfTheirOwn: no path twice, none within another, all in order.
func TestSettingsHavePlacesOfTheirOwn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"full", "auth", "runtimes"} {
		d, _ := Resolve(containerdtest.ReadCase(t, "../../testdata/cases/"+name+"/document.yaml"), "linux")
		for _, r := range append(releases(), Release{2, 4, 2}) {
			all, _ := d.Settings(r)
			for i, s := range all {
				if s.Field == "" || len(s.Path) == 0 {
					t.Errorf("%s: %s of no field", r, s)
				}
				if i > 0 && (slices.Compare(all[i-1].Path, s.Path) >= 0 || within(all[i-1].Path, s.Path)) {
					t.Errorf("%s: %s behind %s", r, s, all[i-1])
				}
			}
		}
	}
}
