package document_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// The kinds of the contract survive the way from the controller to a plugin: Encode, Decode, JSON, Unmarshal.
func TestContractKinds(t *testing.T) {
	t.Parallel()
	type secretive struct {
		v1alpha1.Header
		Spec struct {
			Password v1alpha1.Secret `json:"password,omitzero"`
			Unset    v1alpha1.Secret `json:"unset,omitzero"`
		} `json:"spec"`
	}
	header := func(kind string) v1alpha1.Header {
		return v1alpha1.Header{APIVersion: v1alpha1.APIVersion, Kind: kind, Metadata: v1alpha1.Metadata{
			Name: "site", Timeout: "5m", When: &target.Selector{OS: []string{"linux"}},
		}}
	}
	sysctl := v1alpha1.Sysctl{Header: header(v1alpha1.KindSysctl), Spec: v1alpha1.SysctlSpec{
		Provider: "procfs", Parameters: map[string]v1alpha1.IntOrString{"net.ipv4.ip_forward": "1", "kernel.core_pattern": "|/bin/false"},
		Modules: []string{"overlay"}, ProviderConfig: json.RawMessage(`{"a":[1,2.5,"0640"]}`),
	}}
	join := secretive{Header: header(v1alpha1.KindDomainJoin)}
	join.Spec.Password = v1alpha1.NewSecret([]byte("no: #5\n\ttab"))

	var out bytes.Buffer
	if err := document.Encode(&out, sysctl, &join); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "unset") {
		t.Errorf("a field that is not set was written:\n%s", out.String())
	}
	stream, err := document.Decode("f", &out)
	if err != nil || len(stream.Errors) > 0 || len(stream.Documents) != 2 {
		t.Fatalf("%v, %v", err, stream.Errors)
	}
	var gotSysctl v1alpha1.Sysctl
	var gotJoin secretive
	for i, into := range []any{&gotSysctl, &gotJoin} {
		data, err := stream.Documents[i].JSON()
		if err != nil {
			t.Fatal(err)
		}
		if v := document.Unmarshal(data, into); len(v) > 0 {
			t.Fatal(v)
		}
	}
	if !reflect.DeepEqual(gotSysctl, sysctl) {
		t.Errorf("got %+v, want %+v", gotSysctl, sysctl)
	}
	if string(gotJoin.Spec.Password.Reveal()) != "no: #5\n\ttab" || !gotJoin.Spec.Unset.IsZero() {
		t.Errorf("the secret became %q", gotJoin.Spec.Password.Reveal())
	}
}

func ExampleUnmarshal() {
	stream, err := document.Decode("node.yaml", strings.NewReader(`apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: Sysctl
metadata: {name: forwarding}
spec:
  parameter: {}
  modules: overlay
`))
	if err != nil || len(stream.Errors) > 0 {
		fmt.Println(err, stream.Errors)
		return
	}
	d := stream.Documents[0]
	data, err := d.JSON()
	if err != nil {
		fmt.Println(err)
		return
	}
	var sysctl v1alpha1.Sysctl
	for _, v := range document.Unmarshal(data, &sysctl) {
		fmt.Println(&document.Error{
			File: stream.File, Kind: d.Kind, Name: d.Name, Field: v.Field, Position: d.Locate(v.Field), Message: v.Message, Hint: v.Hint,
		})
	}
	// Output:
	// node.yaml:5:3: Sysctl/forwarding: spec.parameter: unknown field
	//   hint: did you mean parameters?
	// node.yaml:6:3: Sysctl/forwarding: spec.modules: must be a list
	//   hint: write modules: [...]
}
