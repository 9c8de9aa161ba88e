package document

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestIntegersStayExact on the way from a document through JSON into every type that a plugin can read them by.
func TestIntegersStayExact(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808",
		"9223372036854775808", "18446744073709551615",
	} {
		var into struct {
			Spec struct {
				Any    any             `json:"any"`
				Number json.Number     `json:"number"`
				Raw    json.RawMessage `json:"raw"`
			} `json:"spec"`
			APIVersion, Kind, Metadata any
		}
		d := one(t, withSpec("any: "+text+"\nnumber: "+text+"\nraw: {a: ["+text+"]}"))
		data := jsonOf(t, d)
		for _, v := range Unmarshal([]byte(data), &into) {
			assert.Equal(t, unknownField, v.Message, v.Field)
		}
		assert.EqualValues(t, text, into.Spec.Number)
		assert.JSONEq(t, `{"a":[`+text+`]}`, string(into.Spec.Raw))
		assert.Contains(t, string(into.Spec.Raw), text)
		written, err := json.Marshal(into.Spec.Any)
		require.NoError(t, err)
		assert.Equal(t, text, string(written))
		assert.Contains(t, data, text)
	}
}

// TestSelectorNames: operating systems and architectures are closed sets, distributions are not.
func TestSelectorNames(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"os: [linx]":                    "metadata.when.os[0]: is not an operating system that machineadm supports (did you mean linux?)",
		"os: [linux, Windows]":          "metadata.when.os[1]: is not an operating system that machineadm supports (did you mean windows?)",
		"os: [plan9]":                   "metadata.when.os[0]: is not an operating system that machineadm supports (remove it, or use one of: linux, windows)",
		"os: [\"\"]":                    "metadata.when.os[0]: is not an operating system that machineadm supports (remove it, or use one of: linux, windows)",
		"architectures: [amd46]":        "metadata.when.architectures[0]: is not the GOARCH name of an architecture (did you mean amd64?)",
		"architectures: [x86_64]":       "metadata.when.architectures[0]: is not the GOARCH name of an architecture (did you mean amd64?)",
		"architectures: [aarch64]":      "metadata.when.architectures[0]: is not the GOARCH name of an architecture (did you mean arm64?)",
		"distributions: [Debian]":       "metadata.when.distributions[0]: must consist of a-z, 0-9, dots, dashes and underscores (write it in lower case, as os-release(5) does)",
		"distributions: [redhat]":       "metadata.when.distributions[0]: is the ID of no distribution (use rhel: an ID is that of os-release(5), and has no version)",
		"distributions: [ubuntu-24.04]": "metadata.when.distributions[0]: is the ID of no distribution (use ubuntu: an ID is that of os-release(5), and has no version)",
		"distributions: [suse, sles_sap, opensuse-leap, raspbian]": "",
		"os: []":                       "metadata.when.os: is empty (name what the document is for, or remove the field)",
		"os: [linux, windows]":         "",
		"architectures: [\"386\"]":     "",
		"distributions: [nobody-made]": "",
	} {
		stream := decode(t, head+"  when: {"+when+"}\nspec: {}\n")
		got := ""
		for _, e := range stream.Errors {
			got += e.Field + ": " + e.Message + " (" + e.Hint + ")"
		}
		assert.Equal(t, want, got, when)
	}
}

func TestSuggestKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"Sysctl": "Sysctl", "sysctl": "Sysctl", "Sysctrl": "Sysctl", "ContainerRuntimes": "ContainerRuntime", "Widget": "", "Timesyncd": "Timesync",
	} {
		assert.Equal(t, want, SuggestKind(kind), kind)
	}
	stream := decode(t, "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: sysctl\nmetadata: {name: a}\nspec: {}\n")
	require.Len(t, stream.Errors, 1)
	assert.Equal(t, "did you mean Sysctl?", stream.Errors[0].Hint)
}

// shelf has hints for a field that it does not have.
type shelf struct {
	Books []string `json:"books"`
}

func (shelf) NoField(name string) string {
	if name == "toys" {
		return "put toys elsewhere"
	}
	return ""
}

func TestNoField(t *testing.T) {
	t.Parallel()
	var into struct {
		Shelf  *shelf            `json:"shelf"`
		Rooms  map[string]shelf  `json:"rooms"`
		Embeds []struct{ shelf } `json:"embeds"`
	}
	var got []string
	for _, v := range Unmarshal([]byte(`{"shelf":{"toys":1,"book":2},"rooms":{"a":{"toys":1}},"embeds":[{"toys":1}]}`), &into) {
		got = append(got, v.Field+": "+v.Message+" ("+v.Hint+")")
	}
	assert.Equal(t, []string{
		"shelf.toys: unknown field (put toys elsewhere)", "shelf.book: unknown field (did you mean books?)",
		"rooms.a.toys: unknown field (put toys elsewhere)", "embeds[0].toys: unknown field (put toys elsewhere)",
	}, got)
}
