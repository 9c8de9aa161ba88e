package document_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

type secretTree struct {
	Password v1alpha1.Secret         `json:"password"`
	Children []secretTree            `json:"children"`
	Self     *secretTree             `json:"self"`
	Named    map[string]*secretTree  `json:"named"`
	Free     json.RawMessage         `json:"free"`
	Any      any                     `json:"any"`
	Odd      [2]**v1alpha1.Secret    `json:"a.b"`
	Matrix   [][]map[string]secretly `json:"matrix"`
	hidden   v1alpha1.Secret
	Ignored  v1alpha1.Secret `json:"-"`
}

type secretly struct{ v1alpha1.Secret }

func TestSecretFields(t *testing.T) {
	t.Parallel()
	_ = secretTree{}.hidden
	for name, c := range map[string]struct {
		of   reflect.Type
		want []string
	}{
		"none":   {reflect.TypeFor[v1alpha1.Sysctl](), nil},
		"no one": {reflect.TypeFor[string](), nil},
		"a document of the contract": {reflect.TypeFor[v1alpha1.ContainerRuntime](), []string{
			"spec.registries[].mirrors[].client.key", "spec.registries[].mirrors[].headers[]",
			"spec.registries[].client.key", "spec.registries[].headers[]",
			"spec.registries[].auth.password", "spec.registries[].auth.identityToken", "spec.registryHeaders[]",
			"spec.proxy.httpSecret", "spec.proxy.httpsSecret",
		}},
		"every shape": {reflect.TypeFor[secretTree](), []string{"password", `["a.b"][]`, "matrix[][][]"}},
		"a pointer":   {reflect.TypeFor[**v1alpha1.ClientCertificate](), []string{"key"}},
	} {
		assert.Equal(t, c.want, document.SecretFields(c.of), name)
	}
}
