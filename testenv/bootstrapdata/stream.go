package bootstrapdata

import (
	"encoding/json"
	"fmt"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
)

// Token is the secret in the stream: a canary that needs quoting everywhere.
const Token = `c4n4ry <&> 'quoted' "text"`

// Stream is the one that boots the nodes of this package. testenv/controller makes the same from objects, and compares the bytes.
func Stream() ([]byte, error) {
	return encoded(nil)
}

// encoded is the stream with further documents.
func encoded(further []emit.Document) ([]byte, error) {
	token, err := json.Marshal(Token)
	if err != nil {
		return nil, fmt.Errorf("quote the token: %w", err)
	}
	ordered, err := emit.Order(append([]emit.Document{
		noop("last", `"token":{"value":`+string(token)+`},"touch":["/var/last"]`),
		{
			Header: contract.Header{APIVersion: contract.APIVersion, Kind: contract.KindSysctl, Metadata: contract.Metadata{Name: "node"}},
			Spec:   contract.SysctlSpec{Parameters: map[string]contract.IntOrString{"net.core.somaxconn": "8191"}},
		},
	}, further...))
	if err != nil {
		return nil, fmt.Errorf("put the documents in order: %w", err)
	}
	text, err := emit.Stream(ordered)
	if err != nil {
		return nil, fmt.Errorf("encode the documents: %w", err)
	}
	return text, nil
}

// noop is a document of the test plugin.
func noop(name, spec string) emit.Document {
	header := contract.Header{APIVersion: "example.com/v1", Kind: "Noop", Metadata: contract.Metadata{Name: name}}
	return emit.Document{Header: header, Spec: json.RawMessage(`{"provider":"test",` + spec + `}`)}
}
