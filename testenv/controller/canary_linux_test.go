package controller

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// canaries: no value of a Secret is in a log, an event, a status, a metric, or in what etcd has beside Secrets.
func (r *rig) canaries(t *testing.T) {
	secrets := r.secretTexts(t)
	require.Greater(t, len(secrets), 20)
	secrets["canary"] = []byte(canary)
	places := map[string][]byte{"metrics": []byte(r.authorizedMetrics(t))}
	log, err := os.ReadFile(r.manager.Log)
	require.NoError(t, err)
	require.NotEmpty(t, log)
	places["log"] = log
	for line := range bytes.Lines(log) {
		if bytes.Contains(line, []byte("Reconciler error")) && bytes.Contains(line, []byte(`"controller":"machinebootstrapconfig"`)) {
			t.Errorf("an input that is not valid is no fault: %s", line)
		}
	}
	var events eventsv1.EventList
	require.NoError(t, r.List(t.Context(), &events))
	require.NotEmpty(t, events.Items)
	places["events"], err = json.Marshal(events)
	require.NoError(t, err)
	var configs bootstrap.MachineBootstrapConfigList
	require.NoError(t, r.List(t.Context(), &configs))
	for i := range configs.Items {
		places["status of "+configs.Items[i].Name], err = json.Marshal(configs.Items[i].Status)
		require.NoError(t, err)
	}
	absent(t, secrets, places)

	delete(secrets, "canary") // The specs of some configs have it, where a reference belongs.
	stored := r.stored(t)
	require.NotEmpty(t, stored)
	absent(t, secrets, stored)
}

func absent(t *testing.T, secrets, places map[string][]byte) {
	t.Helper()
	for name, value := range secrets {
		for _, form := range forms(value) {
			for place, text := range places {
				if bytes.Contains(text, form) {
					t.Errorf("%s has %s", place, name)
				}
			}
		}
	}
}

// secretTexts are the values of Secrets that are secret: of a text with several lines, the longest. What the manager made for
// machines consists of these and of texts that are not.
func (r *rig) secretTexts(t *testing.T) map[string][]byte {
	t.Helper()
	var secrets corev1.SecretList
	require.NoError(t, r.List(t.Context(), &secrets))
	found := map[string][]byte{"password": []byte(secretValue)}
	for i := range secrets.Items {
		s := &secrets.Items[i]
		for key, value := range s.Data {
			if owner := metav1.GetControllerOf(s); owner != nil && key == "value" {
				continue
			}
			if strings.HasSuffix(s.Name, "-machineadm") || strings.HasSuffix(s.Name, "-kubeconfig") || key == "tls.key" || key == "token-secret" {
				found[s.Name+" "+key] = longest(value)
			}
		}
	}
	return found
}

func longest(text []byte) []byte {
	var found []byte
	for _, line := range bytes.Split(text, []byte("\n")) {
		if len(line) > len(found) {
			found = line
		}
	}
	return found
}

// forms are those in which a text may appear: as it is, in base64 at each of three positions in a longer text, in hexadecimal.
func forms(text []byte) [][]byte {
	all := [][]byte{text, []byte(hex.EncodeToString(text))}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), text...))
		if len(encoded) > 12 { // without the characters that the neighbors have a part in
			all = append(all, []byte(encoded[4:len(encoded)-4]))
		}
	}
	return all
}

// stored is what etcd has, by key, but Secrets.
func (r *rig) stored(t *testing.T) map[string][]byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.Etcd+"/v3/kv/range",
		strings.NewReader(`{"key":"AA==","range_end":"AA=="}`)) // all keys
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	var body struct {
		Pairs []struct{ Key, Value []byte } `json:"kvs"`
	}
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(&body))
	require.NoError(t, response.Body.Close())
	values := map[string][]byte{}
	for _, pair := range body.Pairs {
		if !bytes.HasPrefix(pair.Key, []byte("/registry/secrets/")) {
			values["etcd "+string(pair.Key)] = pair.Value
		}
	}
	return values
}
