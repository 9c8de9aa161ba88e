// Package cases has documents of the kinds that several providers can serve, and what every provider answers to them: the rules and the meanings
// that no schema can state. The check kind of the conformance kit tries them on a plugin. Each is a case in the format of the kit, without files
// of a machine and without what is up to a provider, such as the ids of changes.
package cases

import (
	"embed"
	"io/fs"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

//go:embed ContainerRuntime DomainJoin KubernetesNode Sysctl Timesync
var files embed.FS

// Case is a document and the answer that it has, both in YAML.
type Case struct {
	// Name is the name of its directory.
	Name string
	// Config is config.yaml, and Expect is expect.yaml, which is empty where it is absent.
	Config, Expect []byte
}

// For returns the cases of a kind, by name. It returns none for a kind that is not of this release or has none.
func For(apiVersion, kind string) ([]Case, error) {
	if apiVersion != v1alpha1.APIVersion {
		return nil, nil
	}
	directories, err := fs.Glob(files, kind+"/*")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, directory := range directories {
		config, err := files.ReadFile(directory + "/config.yaml")
		if err != nil {
			return nil, err
		}
		expect, _ := files.ReadFile(directory + "/expect.yaml") // absent where every answer but InvalidConfig is permitted
		all = append(all, Case{Name: directory[len(kind)+1:], Config: config, Expect: expect})
	}
	return all, nil
}
