package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
)

type refusal struct {
	name, spec string
	want       []string // "FIELD: part of the message", all of them
}

func refuses(t *testing.T, os string, all []refusal) {
	t.Helper()
	for _, c := range all {
		_, violations := Resolve(containerdtest.ContainerRuntime(t, c.spec), os)
		compare(t, c.name, violations, c.want)
		for _, v := range violations {
			containerdtest.Leak(t, c.name, v.Field+v.Message+v.Hint)
		}
	}
}

func TestResolveRefusesScalars(t *testing.T) {
	t.Parallel()
	refuses(t, "linux", []refusal{
		{"nothing asked", `{"provider":"containerd","providerConfig":{"version":"1.7"}}`, []string{"spec: asks for nothing"}},
		{"nothing inside", `{"cdi":{},"nri":{},"cni":{},"proxy":{}}`, []string{
			"spec.cdi: asks for nothing", "spec.nri: asks for nothing", "spec.cni: asks for nothing", "spec.proxy: asks for nothing",
		}},
		{"words", `{"snapshotter":"c4n4ry/","sandboxImage":"c4n4ry:1"}`, []string{
			"spec.sandboxImage: whole reference", "spec.snapshotter: not the name of a snapshotter",
		}},
		{"images", `{"sandboxImage":"r.example.com/c4n4ry"}`, []string{"spec.sandboxImage: either a tag or a digest"}},
		{"paths", `{"rootDir":"c4n4ry","stateDir":"/c4n4ry/"}`, []string{
			"spec.rootDir: absolute path", "spec.stateDir: absolute path",
		}},
		{"one directory for both", `{"rootDir":"/c4n4ry","stateDir":"/c4n4ry"}`, []string{"spec.stateDir: another directory"}},
		{"an address without a host", `{"metricsAddress":":1338"}`, []string{"spec.metricsAddress: not a host"}},
		{"an address without a port", `{"metricsAddress":"c4n4ry"}`, []string{"spec.metricsAddress: must have a port"}},
		{"CDI and CNI", `{"cdi":{"enabled":false,"specDirs":["c4n4ry","/a","/a",""]},"cni":{"binDirs":["/"],"confDir":"./c4n4ry"}}`, []string{
			"spec.cdi.specDirs[0]: absolute path", "spec.cdi.specDirs[2]: listed twice", "spec.cdi.specDirs[3]: is empty",
			"spec.cdi.specDirs: means nothing", "spec.cni.binDirs[0]: absolute path", "spec.cni.confDir: absolute path",
		}},
		{"imports", `{"imports":["c4n4ry","/a/*","/a/*","/c4n4ry/[","/etc/containerd/config.toml","/*/c4n4ry"]}`, []string{
			"spec.imports[0]: absolute path", "spec.imports[2]: listed twice", "spec.imports[3]: not a pattern",
			"spec.imports[4]: written to", "spec.imports[5]: name of the file alone",
		}},
	})
	refuses(t, "windows", []refusal{
		{"the runtimes of another system", `{"defaultRuntime":"runc"}`, []string{"spec.defaultRuntime: not one of spec.runtimes"}},
	})
}

// TestPathsOfAnotherSystem: they are no violations, so that a document is validated on any system.
func TestPathsOfAnotherSystem(t *testing.T) {
	t.Parallel()
	linux, windows := `{"rootDir":"/var/lib/c4n4ry","imports":["/etc/c4n4ry/*"]}`, `{"rootDir":"C:\\c4n4ry","imports":["C:\\c4n4ry\\*"]}`
	for os, spec := range map[string]string{"linux": windows, "windows": linux} {
		compare(t, os, wanted(t, os, spec).Elsewhere, []string{"spec.rootDir: another operating system", "spec.imports[0]: another operating system"})
	}
	for os, spec := range map[string]string{"linux": linux, "windows": windows} {
		compare(t, os, wanted(t, os, spec).Elsewhere, nil)
	}
}

func TestResolveRefusesRuntimes(t *testing.T) {
	t.Parallel()
	refuses(t, "linux", []refusal{
		{"names", `{"runtimes":{"Run":{},"a_b":{},"-a":{},"` + strings.Repeat("a", 64) + `":{}}}`, []string{
			`spec.runtimes["-a"]: not a name`, `spec.runtimes.Run: not a name`, `spec.runtimes.a_b: not a name`,
			`spec.runtimes.` + strings.Repeat("a", 64) + `: not a name`,
		}},
		{"types", `{"runtimes":{"other":{},"a":{"type":"runc"},"b":{"type":"/c4n4ry"},"c":{"type":"io.containerd.c4n4ry"}}}`, []string{
			`spec.runtimes.a.type: not a type`, `spec.runtimes.b.type: not a type`, `spec.runtimes.c.type: not a type`,
			`spec.runtimes.other.type: is missing`,
		}},
		{"a program by its name", `{"runtimes":{"crun":{"binary":"c4n4ry"}}}`, []string{`spec.runtimes.crun.binary: absolute path`}},
		{"cgroup drivers", `{"runtimes":{"crun":{"cgroupDriver":"systemd"},"runsc":{"cgroupDriver":"systemd"}}}`, []string{
			`spec.runtimes.runsc.cgroupDriver: OCI runtimes alone`,
		}},
		{"options", `{"runtimes":{"runc":{"options":{"SystemdCgroup":true,"BinaryName":"/x","c4n4rY":1,"NoPivotRoot":"c4n4ry","IoUid":-1,"Root":null}}}}`, []string{
			`spec.runtimes.runc.options.BinaryName: set by binary`, `spec.runtimes.runc.options.IoUid: must be an integer`,
			`spec.runtimes.runc.options.NoPivotRoot: must be a boolean`, `spec.runtimes.runc.options.Root: holds null`,
			`spec.runtimes.runc.options.SystemdCgroup: set by cgroupDriver`, `spec.runtimes.runc.options.c4n4rY: no option`,
		}},
		{"the configuration of a shim", `{"runtimes":{"kata":{"options":{"ConfigPath":"a.toml"}},"kata-qemu":{"options":{"ConfigPath":"/opt/kata/"}},"kata-fc":{"options":{"ConfigPath":5}}}}`, []string{
			`spec.runtimes.kata.options.ConfigPath: absolute path`, `spec.runtimes.kata-fc.options.ConfigPath: absolute path`, `spec.runtimes.kata-qemu.options.ConfigPath: absolute path`,
		}},
		{"options of others", `{"runtimes":{"kata":{"options":{"a":{"b":[null]},"c":18446744073709551615,"d":{"e":{"f":1.5}}}}}}`, []string{
			`spec.runtimes.kata.options.a: holds null`, `spec.runtimes.kata.options.c: holds a number`,
		}},
		{"limits", `{"runtimes":{"runc":{"baseSpec":{"rlimits":{"NOFILE":{"soft":1,"hard":1},"RLIMIT_NOFILE":{"soft":2,"hard":1}}}}}}`, []string{
			`spec.runtimes.runc.baseSpec.rlimits.NOFILE: not the name of a limit`,
			`spec.runtimes.runc.baseSpec.rlimits.RLIMIT_NOFILE: soft limit above`,
		}},
		{"no limits", `{"runtimes":{"runc":{"baseSpec":{}}}}`, []string{`spec.runtimes.runc.baseSpec: asks for nothing`}},
		{"a default that is not there", `{"defaultRuntime":"c4n4ry","runtimes":{"crun":{}}}`, []string{"spec.defaultRuntime: not one of spec.runtimes"}},
	})
	for _, spec := range []string{
		`{"defaultRuntime":"runc"}`, `{"defaultRuntime":"crun","runtimes":{"crun":{}}}`,
		`{"runtimes":{"kata-fc":{},"runsc":{},"other":{"type":"io.containerd.runc.v2"},"third":{"type":"com.example.shim.v10"}}}`,
	} {
		wanted(t, "linux", spec)
	}
	wanted(t, "windows", `{"defaultRuntime":"runhcs-wcow-process","runtimes":{"runhcs-own":{"binary":"C:\\x.exe"}}}`)
}

func TestResolveRefusesRegistries(t *testing.T) {
	t.Parallel()
	const mirror = `{"mirrors":[{"url":"https://m.example.com"}]}`
	refuses(t, "linux", []refusal{
		{"hosts", `{"registries":{"canary":` + mirror + `,"a:b":` + mirror + `,"https://x":` + mirror + `,"` + hubIndex() + `":` + mirror + `,"r.example.com":{},"` + hubSite() + `":` + mirror + `}}`, []string{
			`spec.registries["a:b"]: must have a port`, `spec.registries.canary: never the host`, `spec.registries["https://x"]: must have a port`,
			`spec.registries["` + hubSite() + `"]: is a web site`, `spec.registries["` + hubIndex() + `"]: never the host`, `spec.registries["r.example.com"]: asks for nothing`,
		}},
		{"URLs", `{"registries":{"r.test":{"server":"c4n4ry","mirrors":[{"url":""},{"url":"https://u:c4n4ry@m.test"},{"url":"https://m.test?c4n4ry"},{"url":"https://M.test:443/"},{"url":"https://m.test"}]}}}`, []string{
			`spec.registries["r.test"].mirrors[0].url: is empty`, `spec.registries["r.test"].mirrors[1].url: user or a password`,
			`spec.registries["r.test"].mirrors[2].url: no ?`, `spec.registries["r.test"].mirrors[4].url: is the URL of spec.registries["r.test"].mirrors[3]`,
			`spec.registries["r.test"].server: must begin with https://`,
		}},
		{"the name of Docker Hub", `{"registries":{"r.test":{"mirrors":[{"url":"https://` + hub() + `"}]}}}`, []string{
			`spec.registries["r.test"].mirrors[0].url: is the name of Docker Hub`,
		}},
		{"access", `{"registries":{"r.test":{"mirrors":[{"url":"https://m.test","capabilities":["pull","c4n4ry","pull",""],"dialTimeout":"c4n4ry"}],"dialTimeout":"-1s"}}}`, []string{
			`spec.registries["r.test"].mirrors[0].capabilities[2]: listed twice`,
			`spec.registries["r.test"].mirrors[0].capabilities[3]: is empty`, `spec.registries["r.test"].mirrors[0].dialTimeout: duration above zero`,
			`spec.registries["r.test"].dialTimeout: duration above zero`,
		}},
		{"headers", `{"registries":{"_default":{"headers":{"a b":{"value":"x"},"x-a":{"value":"c4n4ry\n"},"X-A":{"value":""},"host":{"value":"x"}}}}}`, []string{
			`spec.registries._default.headers.X-A: is empty`, `spec.registries._default.headers["a b"]: not the name of a header`,
			`spec.registries._default.headers.host: HTTP sets by itself`, `spec.registries._default.headers.x-a: is the same header`,
			`spec.registries._default.headers.x-a: control characters`,
		}},
		{"TLS without TLS", `{"registries":{"r.test":{"server":"http://r.test","ca":"@CA@","skipVerify":true,"client":{"cert":"@CERT@","key":{"value":"@KEY@"}}}}}`, []string{
			`spec.registries["r.test"].ca: is for https`, `spec.registries["r.test"].client: is for https`,
			`spec.registries["r.test"].skipVerify: is for https`, `spec.registries["r.test"].ca: not looked at`,
		}},
		{"the access of a mirror that is the server, twice", `{"registries":{"r.test":{"server":"https://m.test/","overridePath":true,"mirrors":[{"url":"https://m.test"}]}}}`, []string{
			`spec.registries["r.test"].server: which says how it is reached`,
		}},
		{"auth", `{"registries":{"_default":{"auth":{"identityToken":{"value":"c4n4ry"}}},"a.test":{"auth":{"username":"c4n4ry"}},"b.test":{"auth":{"username":"c4n4ry\u0001","password":{"value":"c4n4ry\n"},"identityToken":{"value":"c4n4ry"}}}}}`, []string{
			`spec.registries._default.auth: is for one host`,
			`spec.registries["b.test"].auth.username: control characters`, `spec.registries["b.test"].auth.password: control characters`,
			`spec.registries["a.test"].auth: neither`, `spec.registries["b.test"].auth: both`,
		}},
		{"auth for one host twice", `{"registries":{"a.test":{"server":"https://b.test","auth":{"username":"u","password":{"value":"c4n4ry"}}},"b.test":{"auth":{"username":"u","password":{"value":"c4n4ry"}}}}}`, []string{
			`spec.registries["b.test"].auth: is for the same host as spec.registries["a.test"].auth`,
		}},
	})
	refuses(t, "windows", []refusal{
		{"one directory for two hosts", `{"registries":{"R.test":` + mirror + `,"r.test":` + mirror + `,"[::1]":` + mirror + `,"[1::]":` + mirror + `}}`, []string{
			`spec.registries["[::1]"]: the same directory as spec.registries["[1::]"]`, `spec.registries["r.test"]: the same directory as spec.registries["R.test"]`,
		}},
	})
	wanted(t, "linux", `{"registries":{"R.test":`+mirror+`,"r.test":`+mirror+`}}`)
}

func TestResolveRefusesCertificates(t *testing.T) {
	t.Parallel()
	at := func(ca, cert, key string) string {
		return `{"registries":{"r.test":{"ca":"` + ca + `","client":{"cert":"` + cert + `","key":{"value":"` + key + `"}}}}}`
	}
	const field = `spec.registries["r.test"].`
	refuses(t, "linux", []refusal{
		{"not PEM", at("c4n4ry", "@CERT@", "@KEY@"), []string{field + "ca: not PEM"}},
		{"white space", at(" \\n", "@CERT@", "@KEY@"), []string{field + "ca: no certificate"}},
		{"a key", at("@CA@@OTHER@", "@CERT@", "@KEY@"), []string{field + "ca: private key"}},
		{"something behind", at("@CA@c4n4ry", "@CERT@", "@KEY@"), []string{field + "ca: not PEM"}},
		{"something else", at(`-----BEGIN X-----\nAAAA\n-----END X-----\n`, "@CERT@", "@KEY@"), []string{field + "ca: something else"}},
		{"no certificate inside", at(`-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`, "@CERT@", "@KEY@"), []string{field + "ca: cannot be read"}},
		{"one that is cut off before a good one", at(`-----BEGIN CERTIFICATE-----\nAAAA\n@CA@`, "@CERT@", "@KEY@"), []string{field + "ca: cut off"}},
		{"the key of another", at("@CA@", "@CERT@", "@OTHER@"), []string{field + "client.key: not the key of the certificate"}},
		{"no key", at("@CA@", "@CERT@", "@CERT@"), []string{field + "client.key: not a private key"}},
		{"an encrypted key", at("@CA@", "@CERT@", `-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n`), []string{field + "client.key: encrypted"}},
		{"a certificate that is a key", at("@CA@", "@KEY@", "@KEY@"), []string{field + "client.cert: private key"}},
		{"trusted ones", `{"trustedCAs":"c4n4ry"}`, []string{"spec.trustedCAs: not PEM"}},
	})
	wanted(t, "linux", at(`subject=CN = ca\n@CA@@CERT@\n`, `@CERT@@CA@`, "@KEY@"))
}

func TestResolveRefusesProxies(t *testing.T) {
	t.Parallel()
	refuses(t, "linux", []refusal{
		{"credentials in the open", `{"proxy":{"http":"http://u:c4n4ry@p.test:3128","https":"http://c4n4ry@p.test"}}`, []string{
			"spec.proxy.http: user or a password", "spec.proxy.https: user or a password",
		}},
		{"both forms", `{"proxy":{"https":"http://p.test:3128","httpsSecret":{"value":"http://u:c4n4ry@p.test:3128"}}}`, []string{"spec.proxy.httpsSecret: as well as spec.proxy.https"}},
		{"URLs", `{"proxy":{"http":"c4n4ry","httpsSecret":{"value":"http://u:c4n4ry|@p.test"},"noProxy":["c4n4ry,x","a.test","a.test"]}}`, []string{
			"spec.proxy.http: must begin with http://", "spec.proxy.httpsSecret: not a URL", "spec.proxy.noProxy[0]: not a host",
			"spec.proxy.noProxy[2]: listed twice",
		}},
		{"a zone", `{"proxy":{"http":"http://p.test","noProxy":["fe80::1","fe80::1%c4n4ry\n\nUser=x"]}}`, []string{"spec.proxy.noProxy[1]: must have a port"}},
		{"a range", `{"proxy":{"http":"http://p.test","noProxy":["192.0.2.1-192.0.2.9"]}}`, []string{"spec.proxy.noProxy[0]: is a range of addresses"}},
		{"a path", `{"proxy":{"http":"http://p.test/c4n4ry"}}`, []string{"spec.proxy.http: must end behind its host"}},
		{"an empty secret", `{"proxy":{"httpSecret":{"value":""}}}`, []string{"spec.proxy.httpSecret: must begin with http://"}},
		{"exceptions from nothing", `{"proxy":{"noProxy":["*"]}}`, []string{"spec.proxy.noProxy: means nothing"}},
	})
	_, violations := Resolve(containerdtest.ContainerRuntime(t, `{"proxy":{"https":"http://u:c4n4ry@p.test"}}`), "linux")
	if len(violations) != 1 || !strings.Contains(violations[0].Hint, "spec.proxy.httpsSecret: {value: ") {
		t.Errorf("the hint is missing: %+v", violations)
	}
}

func TestResolveRefusesPatches(t *testing.T) {
	t.Parallel()
	refuses(t, "linux", []refusal{
		{"fields", `{"logLevel":"info","providerConfig":{"versions":"1.7","version":"c4n4ry","patches":[1]}}`, []string{
			"spec.providerConfig.versions: unknown", "spec.providerConfig.patches[0]: must be a string",
			"spec.providerConfig.version: not a version",
		}},
		{"no mapping", `{"logLevel":"info","providerConfig":["c4n4ry"]}`, []string{"spec.providerConfig: must be a mapping"}},
		{"versions", `{"logLevel":"info","providerConfig":{"version":"c4n4ry"}}`, []string{"spec.providerConfig.version: not a version"}},
		{"an old version", `{"logLevel":"info","providerConfig":{"version":"1.5.9"}}`, []string{"spec.providerConfig.version: older than 1.6"}},
		{"TOML", `{"providerConfig":{"patches":["a = 1\nb = c4n4ry","[c4n4ry\n","a = 1\na = 2","","version = 4\na = 1","version = \"c4n4ry\"\na = 1","a = 1979-05-27"]}}`, []string{
			"spec.providerConfig.patches[0]: line 2, column", "spec.providerConfig.patches[1]: line 1, column", "spec.providerConfig.patches[2]: line 2",
			"spec.providerConfig.patches[3]: sets nothing", "spec.providerConfig.patches[4]: a version that is not written",
			"spec.providerConfig.patches[5]: a version that is not written", "spec.providerConfig.patches[6]: a to a date",
		}},
		{"what other fields are for", `{"providerConfig":{"patches":["imports = ['/x']","[plugins.'` + CRIPlugin + `'.registry]\nconfig_path = '/c4n4ry'",
			"[plugins.'` + ImagesPlugin + `'.registry.configs.'a'.auth]\npassword = 'c4n4ry'","[plugins.'` + ImagesPlugin + `'.registry.headers]\na = ['c4n4ry']"]}}`, []string{
			"spec.providerConfig.patches[0]: spec.imports is for", "spec.providerConfig.patches[1]: spec.registries is for",
			"spec.providerConfig.patches[2]: spec.registries is for", "spec.providerConfig.patches[3]: may be secret",
		}},
		{"a long one", `{"providerConfig":{"patches":["# ` + strings.Repeat("x", longestPatch) + `"]}}`, []string{"spec.providerConfig.patches[0]: longer than 64 KiB"}},
	})
}

func TestResolveReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	refuses(t, "linux", []refusal{{"all", `{"runtimes":{"X":{}},"registries":{"x":{}},"proxy":{"http":"x"},
		"imports":["x"],"cni":{"confDir":"x"},"trustedCAs":"x","providerConfig":{"patches":["x"]}}`, []string{
		"spec.providerConfig.patches[0]: not TOML", "spec.cni.confDir: absolute",
		`spec.runtimes.X: not a name`, `spec.registries.x: never the host`, "spec.proxy.http: must begin",
		"spec.trustedCAs: not PEM", "spec.imports[0]: absolute", "spec.registries.x: asks for nothing",
	}}})
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	d := wanted(t, "linux", `{"registries":{"`+hubServer()+`":{"mirrors":[{"url":"https://m.test","skipVerify":true}]}}}`)
	if len(d.Warnings) != 2 || d.Warnings[0].Field != `spec.registries["`+hubServer()+`"]` ||
		d.Warnings[1].Field != `spec.registries["`+hubServer()+`"].mirrors[0].skipVerify` {
		t.Errorf("warnings %+v", d.Warnings)
	}
}

// TestTraps: what is valid and does something else than it was written for has a warning, which the remedy in its text ends.
func TestTraps(t *testing.T) {
	t.Parallel()
	mirror := func(text string) string {
		return `{"registries":{"a.test":{"mirrors":[{"url":"https://m.test` + text + `}]}}}`
	}
	patch := func(text string) string { return `{"runtimes":{"runc":{"baseSpec":{"patch":` + text + `}}}}` }
	for spec, want := range map[string]string{
		`{"runtimes":{"kata":{"options":{"SystemdCgroup":true}}}}`:                                                                  "spec.runtimes.kata.options.SystemdCgroup",
		`{"runtimes":{"runsc":{"options":{"ConfigPath":"/etc/containerd/runsc.toml"}}}}`:                                            "spec.runtimes.runsc.options.ConfigPath",
		`{"runtimes":{"runsc":{"options":{"TypeUrl":"io.containerd.runsc.v1.options","ConfigPath":"/etc/containerd/runsc.toml"}}}}`: "",
		mirror(`/v2/proxy"`):                                  `spec.registries["a.test"].mirrors[0].url: has /v2 within its path`,
		mirror(`/v2/proxy","overridePath":true`):              "",
		mirror(`/proxy"`):                                     "",
		mirror(`/proxy/v2"`):                                  "",
		mirror(`/proxy","overridePath":true`):                 `spec.registries["a.test"].mirrors[0].url: has no /v2 in its path`,
		mirror(`"`):                                           "",
		mirror(`","overridePath":true`):                       `spec.registries["a.test"].mirrors[0].url: has no /v2 in its path`,
		mirror(`","capabilities":[]`):                         `spec.registries["a.test"].mirrors[0].capabilities: is empty`,
		mirror(`","capabilities":["push"]`):                   `spec.registries["a.test"].mirrors[0].capabilities: has neither pull nor resolve`,
		mirror(`","capabilities":["pull"]`):                   "",
		`{"registries":{"a.test":{"overridePath":true}}}`:     `spec.registries["a.test"].overridePath: has no /v2`,
		`{"registries":{"a.test":{"capabilities":["push"]}}}`: `spec.registries["a.test"].capabilities: has no pull`,
		`{"registries":{"a.test":{"capabilities":["pull"]}}}`: `spec.registries["a.test"].capabilities: has no resolve`,
		`{"registries":{"a.test":{"capabilities":["pull"],"mirrors":[{"url":"https://m.test"}]}}}`: "",
		`{"registries":{"_default":{"capabilities":["pull","resolve"]}}}`:                          "",
		`{"registries":{"localhost:5000":{"capabilities":["pull","resolve"]}}}`:                    `spec.registries["localhost:5000"]: is asked by https`,
		`{"registries":{"127.0.0.1:5000":{"dialTimeout":"1s"}}}`:                                   `spec.registries["127.0.0.1:5000"]: is asked by https`,
		`{"registries":{"localhost:5000":{"server":"http://localhost:5000"}}}`:                     "",
		`{"registries":{"localhost:5000":{"mirrors":[{"url":"http://localhost:5000"}]}}}`:          "",
		`{"registries":{"a.test:5000":{"skipVerify":true}}}`:                                       `spec.registries["a.test:5000"].skipVerify`,
		`{"registries":{"a.test":{"auth":{"username":"robot:token","password":{"value":"x"}}}}}`:   `spec.registries["a.test"].auth.username: has a colon`,
		patch(`{"process":{"oomScoreAdjust":100}}`):                                                `spec.runtimes.runc.baseSpec.patch.process.oomScoreAdjust: is no field of a specification here, and containerd ignores it`,
		patch(`{"process":{"capabilities":{"bounding":["NET_ADMIN"]}}}`):                           `spec.runtimes.runc.baseSpec.patch.process.capabilities.bounding[0]: is no name of a capability`,
		`{"runtimes":{"kata":{"binary":"/usr/bin/kata-runtime"}}}`:                                 "spec.runtimes.kata.binary: is not named as a shim",
		`{"runtimes":{"kata":{"binary":"/opt/kata/bin/containerd-shim-kata-v2"}}}`:                 "",
		`{"snapshotter":"devicemapper"}`:                                                           "spec.snapshotter: is none of containerd's own",
		`{"registries":{"a.test":{"server":"https://a.test/library/nginx:latest"}}}`:               `spec.registries["a.test"].server: has the tag of an image`,
		patch(`{"resources":{"pids":{"limit":100}}}`):                                              `spec.runtimes.runc.baseSpec.patch.resources: is no field of a specification here`,
		patch(`{"process":{"oomScoreAdj":100,"env":["A=b"],"capabilities":{"bounding":["CAP_KILL"]}},"linux":{"sysctl":{"net.core.somaxconn":"1024"},"resources":null}}`): "",
		patch(`{"annotations":{"a":"b"},"mounts":[{"destination":"/a","options":["ro"]}],"hooks":{"prestart":[{"path":"/a","timeout":5}]}}`):                              "",
		patch(`{"linux":{"devices":[{"path":"/dev/fuse","type":"c","major":10,"minor":229,"fileMode":438}],"unknown":null},"vm":{"a":[1]}}`):                              "",
		`{"cni":{"confDir":"/etc/cni/net.d/10-a.conflist"}}`:                                                    "spec.cni.confDir: has the name of a file",
		`{"cdi":{"specDirs":["/etc/cdi/nvidia.yaml"]}}`:                                                         "spec.cdi.specDirs[0]: has the name of a file",
		`{"cni":{"confDir":"/etc/cni/net.d"}}`:                                                                  "",
		`{"imports":["/etc/containerd/{a,b}.toml"]}`:                                                            "spec.imports[0]: has no *",
		`{"imports":["/etc/containerd/conf.d"]}`:                                                                "spec.imports[0]: has the name of a directory",
		`{"imports":["/etc/containerd/conf.d/?.toml"]}`:                                                         "spec.imports[0]: has no *",
		`{"imports":["/etc/containerd/conf.d/*.toml","/etc/a.toml"]}`:                                           "",
		`{"registries":{"a.test":{"server":"https://s.test/v2/b"}}}`:                                            `spec.registries["a.test"].server: has /v2 within its path`,
		`{"proxy":{"http":"http://p.test:3128"}}`:                                                               "spec.proxy: has no https",
		`{"proxy":{"httpSecret":{"value":"http://a:b@p.test:3128"}}}`:                                           "spec.proxy: has no https",
		`{"proxy":{"http":"http://p.test:1","https":"http://p.test:1"}}`:                                        "",
		`{"proxy":{"https":"http://p.test:1"}}`:                                                                 "",
		`{"rootDir":"/run/containerd/root"}`:                                                                    "spec.rootDir: is below /run",
		`{"runtimes":{"nvidia":{"type":"io.containerd.runc.v2"}}}`:                                              "spec.runtimes.nvidia: is runc by another name",
		`{"runtimes":{"nvidia":{"type":"io.containerd.runc.v2","binary":"/usr/bin/nvidia-container-runtime"}}}`: "",
		`{"rootDir":"/tmp"}`:                "spec.rootDir: is below /tmp",
		`{"rootDir":"/running/containerd"}`: "",
		`{"snapshotter":"overlay2"}`:        "spec.snapshotter: is none of containerd's own, so that it must be a proxy plugin of the machine's configuration: did you mean overlayfs?",
		`{"snapshotter":"overlayfs"}`:       "",
		`{"snapshotter":"overlaybd"}`:       "",
		`{"snapshotter":"stargz"}`:          "",
	} {
		got := ""
		for _, w := range wanted(t, "linux", spec).Warnings {
			got += w.Field + ": " + w.Message
		}
		assert.True(t, strings.HasPrefix(got, want) && (want == "") == (got == ""), "%s\n%s", spec, got)
	}
}

// TestWhatIsKept: what other files take from here.
func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	d := wanted(t, "linux", `{"imports":["/a/*.toml"],"providerConfig":{"version":"2.1"}}`)
	if d.OS != "linux" || d.Version != "2.1" || len(d.Spec.Imports) != 1 || d.Spec.Imports[0] != "/a/*.toml" {
		t.Errorf("%q %q %q", d.OS, d.Version, d.Spec.Imports)
	}
	if (v1alpha1.ContainerRuntime{}).Spec.Provider != "" {
		t.Error("the zero document asks for something")
	}
}

func TestResolveRefusesHostsOfMirrors(t *testing.T) {
	t.Parallel()
	refuses(t, "linux", []refusal{
		{"a host of a mirror", `{"registries":{"r.test":{"mirrors":[{"url":"https://mirror"}]},"mirror":{"skipVerify":true}}}`, []string{`spec.registries.mirror: auth is all`}},
		{"no host at all", `{"registries":{"mirror":{"auth":{"username":"u","password":{"value":"p"}}}}}`, []string{`spec.registries.mirror: never the host`}},
		{"another web site", `{"registries":{"` + hubHome() + `":{"skipVerify":true}}}`, []string{`spec.registries["` + hubHome() + `"]: is a web site`}},
		{"types of a patch", `{"runtimes":{"runc":{"baseSpec":{"patch":{"mounts":{"destination":"/a"},"process":{"capabilities":["CAP_KILL"],"env":{"A":"b"},"user":{"uid":-1},"oomScoreAdj":1.5},` +
			`"linux":{"sysctl":{"net.core.somaxconn":1024},"devices":[{"path":1}]}}}}}}`, []string{
			`spec.runtimes.runc.baseSpec.patch.linux.devices[0].path: another type`, `spec.runtimes.runc.baseSpec.patch.linux.sysctl["net.core.somaxconn"]: another type`,
			`spec.runtimes.runc.baseSpec.patch.mounts: another type`, `spec.runtimes.runc.baseSpec.patch.process.capabilities: another type`,
			`spec.runtimes.runc.baseSpec.patch.process.env: another type`, `spec.runtimes.runc.baseSpec.patch.process.oomScoreAdj: another type`,
			`spec.runtimes.runc.baseSpec.patch.process.user.uid: another type`,
		}},
		{"a patch", `{"runtimes":{"runc":{"baseSpec":{"patch":{"ociVersion":"2","process":{"rlimits":[]}}}}}}`, []string{`spec.runtimes.runc.baseSpec.patch.ociVersion: belongs`, `spec.runtimes.runc.baseSpec.patch.process.rlimits: is what baseSpec.rlimits`}},
	})
}
