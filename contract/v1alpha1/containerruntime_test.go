package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const containerRuntimeText = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: ContainerRuntime
metadata:
  name: node
spec:
  provider: containerd
  cgroupDriver: systemd
  sandboxImage: registry.example.com/pause:3.10
  snapshotter: overlayfs
  rootDir: /var/lib/a
  stateDir: /run/a
  maxConcurrentDownloads: 3
  logLevel: info
  metricsAddress: 127.0.0.1:1338
  oomScore: 0
  runtimes:
    crun:
      type: io.containerd.runc.v2
      binary: /usr/bin/crun
      cgroupDriver: cgroupfs
      options:
        anything:
          - 1
      baseSpec:
        rlimits:
          RLIMIT_NOFILE:
            soft: 0
            hard: 18446744073709551615
  defaultRuntime: crun
  cdi:
    enabled: false
    specDirs:
      - /etc/cdi
  nri:
    enabled: false
  registries:
    registry.example.com:5000:
      server: https://registry.example.com:5000
      mirrors:
        - url: https://mirror.example.com
          capabilities:
            - pull
          ca: pem
          client:
            cert: pem
            key:
              value: c4n4ry
          skipVerify: true
          overridePath: true
          headers:
            X-A:
              value: c4n4ry
          dialTimeout: 5s
      capabilities:
        - resolve
      skipVerify: true
      auth:
        username: robot
        password:
          value: c4n4ry
        identityToken:
          value: c4n4ry
  proxy:
    http: http://proxy.example.com
    httpSecret:
      value: c4n4ry
    https: http://proxy.example.com
    httpsSecret:
      value: c4n4ry
    noProxy:
      - "*"
  trustedCAs: pem
  cni:
    binDirs:
      - /opt/cni/bin
    confDir: /etc/cni/net.d
  imports:
    - /etc/a/*.toml
  providerConfig:
    anything:
      - 1
`

// TestContainerRuntimeDocument: every field of the kind is read strictly, and written back.
func TestContainerRuntimeDocument(t *testing.T) {
	t.Parallel()
	data := decode(t, containerRuntimeText)
	var doc v1alpha1.ContainerRuntime
	if violations := document.Unmarshal(data, &doc); len(violations) > 0 {
		t.Fatalf("violations %+v", violations)
	}
	var out strings.Builder
	if err := document.Encode(&out, doc); err != nil {
		t.Fatal(err)
	}
	if again := decode(t, out.String()); string(again) != string(data) {
		t.Errorf("written back as\n%s\nwant\n%s", again, data)
	}
	leak(t, "formatted", fmt.Sprintf("%v %+v %#v", doc, doc, doc))
	// What is nothing and what is left out are not the same.
	if doc.Spec.OOMScore == nil || doc.Spec.CDI.Enabled == nil || doc.Spec.NRI.Enabled == nil {
		t.Error("a zero is lost")
	}
}

func TestContainerRuntimeIsReadStrictly(t *testing.T) {
	t.Parallel()
	for spec, field := range map[string]string{
		`{"cgroupdriver":"systemd"}`:                                              "spec.cgroupdriver",
		`{"registries":{"a":{"mirrors":[{"url":"x","auth":{}}]}}}`:                `spec.registries.a.mirrors[0].auth`,
		`{"registries":{"a":{"headers":{"X":"c4n4ry"}}}}`:                         `spec.registries.a.headers.X`,
		`{"registries":{"a":{"auth":{"password":"c4n4ry"}}}}`:                     `spec.registries.a.auth.password`,
		`{"registries":{"a":{"client":{"cert":"x","key":"c4n4ry"}}}}`:             `spec.registries.a.client.key`,
		`{"proxy":{"httpSecret":"c4n4ry"}}`:                                       "spec.proxy.httpSecret",
		`{"proxy":{"http":{"value":"c4n4ry"}}}`:                                   "spec.proxy.http",
		`{"runtimes":{"a":{"baseSpec":{"rlimits":{"RLIMIT_CORE":{"soft":-1}}}}}}`: `spec.runtimes.a.baseSpec.rlimits.RLIMIT_CORE.soft`,
		`{"maxConcurrentDownloads":"3"}`:                                          "spec.maxConcurrentDownloads",
		`{"runtimes":{"a":{"options":["c4n4ry"]}}}`:                               `spec.runtimes.a.options`,
		`{"cdi":{"specDirs":"/c4n4ry"}}`:                                          "spec.cdi.specDirs",
		`{"trustedCAs":["c4n4ry"]}`:                                               "spec.trustedCAs",
	} {
		text := `{"apiVersion":"a/v1","kind":"ContainerRuntime","metadata":{"name":"n"},"spec":` + spec + `}`
		var doc v1alpha1.ContainerRuntime
		violations := document.Unmarshal([]byte(text), &doc)
		if len(violations) != 1 || violations[0].Field != field {
			t.Errorf("%s: got %+v", spec, violations)
		}
		leak(t, "a violation", fmt.Sprint(violations))
	}
}

func TestEmptyContainerRuntime(t *testing.T) {
	t.Parallel()
	doc := v1alpha1.ContainerRuntime{Header: v1alpha1.Header{APIVersion: "a", Kind: "k", Metadata: v1alpha1.Metadata{Name: "n"}}}
	doc.Spec.Registries = map[string]v1alpha1.Registry{"a": {Mirrors: []v1alpha1.RegistryMirror{{}}, Auth: &v1alpha1.RegistryAuth{}}}
	doc.Spec.Proxy = &v1alpha1.Proxy{}
	data, err := json.Marshal(doc)
	if want := `{"apiVersion":"a","kind":"k","metadata":{"name":"n"},"spec":{"registries":{"a":{"mirrors":[{"url":""}],"auth":{}}},"proxy":{}}}`; err != nil || string(data) != want {
		t.Errorf("written as %s, %v", data, err)
	}
}
