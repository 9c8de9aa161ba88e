package crash

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/envelope"
)

// references returns a stream that names a file, and that file, which holds a stream encrypted.
func references(key, file, stream string) (outer, sealed, passphrase string, err error) {
	passphrase = "a passphrase of the campaign"
	d, err := envelope.Seal("sealed", "file", "file://"+key, nil, []byte(passphrase), []byte(stream))
	if err != nil {
		return "", "", "", err
	}
	var text bytes.Buffer
	err = errors.Join(err, document.Encode(&text, d))
	outer = "apiVersion: " + v1alpha1.APIVersion + "\nkind: RemoteConfig\nmetadata: {name: outer}\nspec: {provider: file, uri: " + file + "}\n"
	return outer, text.String(), passphrase, err
}

// TestReferencesOnANode kills live runs before each call that changes what they keep of the streams of references, and
// before each that changes the sentinel: while they keep it, while they remove it, and between that and the sentinel.
func TestReferencesOnANode(t *testing.T) {
	const key, file = "/etc/machineadm/key", "/etc/machineadm/sealed.yaml"
	outer, sealed, passphrase, err := references(key, file, nodeStream)
	if err != nil {
		t.Fatal(err)
	}
	m := bootSysctl(t, map[string]string{nodeFile: outer, file: sealed, key: passphrase}, sourcePlugin, keyPlugin)
	want, calm := m.undisturbed(t)
	for _, within := range []string{"/machineadm/resolved", "/run/cluster-api"} {
		hits := 0
		for hit := true; hit && !t.Failed(); {
			t.Run(fmt.Sprintf("%s %d", within[1:], hits+1), func(t *testing.T) {
				a := attack{victim: victimCaller, exactly: aim{at: hits + 1, within: within}}
				hit, _ = m.crash(t, a, calm, want, hits%2 == 0)
			})
			if hit {
				hits++
				results.hit(victimCaller)
			}
		}
		t.Logf("%d calls change %s", hits, within)
		if hits < 3 {
			t.Errorf("%s: too few calls for a proof", within)
		}
	}
}
