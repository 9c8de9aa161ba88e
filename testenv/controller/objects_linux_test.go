package controller

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/reporting/words"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/tools"
)

// The tokens of the manager and of the machines at the web server that keeps objects.
const (
	writerToken = "canary-of-the-manager-81c2"
	readerToken = "canary-of-the-machines-5e07"
)

// objectRig is a management cluster whose machines have their documents on a web server.
type objectRig struct {
	*rig
	whole *testing.T // with which a manager ends: it outlives the part of the test that starts it
	shelf *shelf
	flags []string
}

// TestObjects: the manager stores documents by the source plugin for web servers, which is the program that a machine has, too.
func TestObjects(t *testing.T) {
	t.Parallel()
	r := &objectRig{rig: light(t), whole: t, shelf: newShelf(t)}
	plugins := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), plugins, map[string]string{
		"machineadm-remote-configuration-provider-http": "plugins/remote-config/http",
		"machineadm-remote-configuration-provider-s3":   "plugins/remote-config/s3",
		"machineadm-plugin-encryption-provider-vault":   "plugins/encrypted-config/vault",
	}))
	r.flags = []string{"--v=5", "--storage-providers=http,s3,vault", "--plugins=" + plugins}
	r.manager.Stop(t)
	r.run(t, r.flags...)
	r.put(t, secret("stored-password", map[string]string{"value": storedSecret}),
		secret("writer", map[string]string{"value": writerToken}), secret("reader", map[string]string{"value": readerToken}))
	r.keeping(t, "shelf", nil)
	t.Run("stored", r.stored)
	t.Run("reports", r.reports)
	t.Run("joined", r.joined)
	t.Run("deleted", r.deleted)
	t.Run("killed", r.killed)
	t.Run("presigned", r.presigned)
	t.Run("encrypted", r.encrypted)
	t.Run("refused", r.refused)
	t.Run("busy", r.busy)
	t.Run("left", r.left)
	t.Run("canaries", r.canaries)
}

// keeping makes a storage on the web server.
func (r *objectRig) keeping(t *testing.T, name string, change func(source map[string]any)) {
	t.Helper()
	source := map[string]any{
		"provider": "http", "uriPrefix": r.shelf.url + "/objects/", "access": bootstrap.AccessRole, "providerConfig": map[string]any{
			"ca": string(r.shelf.ca.Certificate), "bearer": valueFrom("writer"), "read": map[string]any{
				"ca": string(r.shelf.ca.Certificate), "bearer": valueFrom("reader"),
			},
		},
	}
	if change != nil {
		change(source)
	}
	r.put(t, made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapStorage, name, map[string]any{"spec": map[string]any{
		"source": source, "report": map[string]any{"deadline": "1h"},
	}}))
}

// delivered waits for the data of a config, and returns the RemoteConfig in it.
func (r *objectRig) delivered(t *testing.T, name string) contract.RemoteConfigSpec {
	t.Helper()
	r.condition(t, bootstrap.ConditionDataStored, "True", "", name)
	r.condition(t, bootstrap.ConditionReady, "True", "", name)
	data := r.data(t, r.namespace, name)
	require.NotContains(t, string(data.Data["value"]), storedSecret)
	require.NotContains(t, string(data.Data["value"]), writerToken)
	spec := remoteConfig(t, data)
	checkObject(t, spec, r.shelf.object(objectName(spec)))
	return spec
}

// remoteConfig is the only document of bootstrap data.
func remoteConfig(t *testing.T, data *corev1.Secret) contract.RemoteConfigSpec {
	t.Helper()
	var remote contract.RemoteConfig
	only(t, data.Data["value"], &remote)
	return remote.Spec
}

// only decodes a stream of one document.
func only(t *testing.T, stream []byte, into any) {
	t.Helper()
	found, err := document.Decode("", bytes.NewReader(stream))
	require.NoError(t, err)
	require.Empty(t, found.Errors)
	require.Len(t, found.Documents, 1)
	text, err := found.Documents[0].JSON()
	require.NoError(t, err)
	require.Empty(t, document.Unmarshal(text, into))
}

// checkObject compares an object with its reference.
func checkObject(t *testing.T, spec contract.RemoteConfigSpec, object []byte) {
	t.Helper()
	require.Contains(t, string(object), storedSecret)
	sum := sha256.Sum256(object)
	require.Equal(t, hex.EncodeToString(sum[:]), spec.SHA256)
}

// objectName is what follows the prefix of the storage.
func objectName(spec contract.RemoteConfigSpec) string {
	return spec.URI[strings.LastIndex(spec.URI, "/")+1:]
}

// stored: the bootstrap data has a reference with the credentials of machines, and the web server has the documents.
func (r *objectRig) stored(t *testing.T) {
	r.machine(t, "light", "object", referringTo("shelf"))
	spec := r.delivered(t, "object")
	require.Equal(t, "http", spec.Provider)
	require.True(t, strings.HasPrefix(spec.URI, r.shelf.url+"/objects/"), spec.URI)
	require.Regexp(t, `^[a-z0-9-]{32,200}$`, objectName(spec))
	require.Contains(t, string(spec.ProviderConfig), readerToken)
	require.NotNil(t, spec.Report)
	require.NotEmpty(t, spec.Report.URI)
	require.Equal(t, []string{bootstrap.FinalizerStorage}, r.data(t, r.namespace, "object").Finalizers)
	for name, value := range r.data(t, r.namespace, "object").Annotations {
		require.NotContains(t, value, writerToken, name)
	}
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "Unknown", "the machine is not provisioned", "object")
}

// reports: what the machine leaves beside its documents becomes a condition, with the first line of machineadm status.
func (r *objectRig) reports(t *testing.T) {
	spec := r.delivered(t, "object")
	r.provisioned(t, "object")
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "Unknown", "the machine is provisioned, and has not reported", "object")
	beside := objectName(spec) + ".report.json"
	r.shelf.put(beside, []byte("{"))
	r.condition(t, bootstrap.ConditionDataStored, "True", "the report is not valid JSON", "object")
	r.shelf.put(beside, []byte(body(t, report.RunFailed, "no route")))
	line := words.Headline(reportOf(report.RunFailed, "no route"), false)
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "False", line, "object")
	r.condition(t, bootstrap.ConditionReady, "False", "BootstrapSucceeded: "+line, "object")
	r.shelf.put(beside, []byte(body(t, report.RunSucceeded, "")))
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "True", "Succeeded: 1 document", "object")
	r.condition(t, bootstrap.ConditionReady, "True", "", "object")
}

func (r *objectRig) provisioned(t *testing.T, name string) {
	t.Helper()
	machine := &clusterv1.Machine{}
	machine.Namespace, machine.Name = r.namespace, name
	require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"conditions":[{"type":"`+clusterv1.InfrastructureReadyCondition+
		`","status":"True","reason":"Test","message":"","lastTransitionTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}]}}`))) // within the deadline of the report
}

// joined: when the machine has a node and its last report has come, both objects and the copy in the Secret are removed.
func (r *objectRig) joined(t *testing.T) {
	machine := &clusterv1.Machine{}
	machine.Namespace, machine.Name = r.namespace, "object"
	require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"nodeRef":{"name":"object"}}}`)))
	r.condition(t, bootstrap.ConditionDataStored, "True", "the machine has joined", "object")
	r.empty(t)
	data := r.data(t, r.namespace, "object").Data
	require.NotEmpty(t, data["value"])
	require.NotContains(t, data, "documents")
	r.condition(t, bootstrap.ConditionBootstrapSucceeded, "True", "Succeeded", "object")
}

// empty waits until the web server has no object.
func (r *objectRig) empty(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.shelf.names()) == 0 }, limit, 20*time.Millisecond, "%v", r.shelf.names())
}

// remove deletes a config and its Machine, and waits until the Secret is gone, too.
func (r *objectRig) remove(t *testing.T, name string) {
	t.Helper()
	for _, o := range []client.Object{&bootstrap.MachineBootstrapConfig{}, &clusterv1.Machine{}} {
		o.SetNamespace(r.namespace)
		o.SetName(name)
		require.NoError(t, r.Delete(t.Context(), o))
	}
}

func (r *objectRig) gone(t *testing.T, name string) {
	t.Helper()
	var secrets corev1.SecretList
	management.Await(t, r, limit, &secrets, func() error {
		if len(secrets.Items) > 0 {
			return fmt.Errorf("Secret %s is there, with %v", secrets.Items[0].Name, secrets.Items[0].Finalizers)
		}
		return nil
	}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": name + dataSuffix})
}

// deleted: with a config its object is removed, also one that was deleted while no manager ran.
func (r *objectRig) deleted(t *testing.T) {
	r.machine(t, "light", "short", referringTo("shelf"))
	r.machine(t, "light", "away", referringTo("shelf"))
	r.delivered(t, "short")
	r.delivered(t, "away")
	r.remove(t, "short")
	r.gone(t, "short")
	require.Len(t, r.shelf.names(), 1)
	r.manager.Kill(t)
	r.remove(t, "away")
	r.again(r.whole, r.flags...)
	r.gone(t, "away")
	r.remove(t, "object")
	r.gone(t, "object")
	r.empty(t)
}

// killed: whenever the manager is killed while it stores, the machine gets data that fits its object, and nothing is left of it.
func (r *objectRig) killed(t *testing.T) {
	for i, at := range []stage{arrived, kept, answered} {
		name := fmt.Sprintf("killed-%d", i)
		reached, release := r.shelf.hold(at)
		r.machine(t, "light", name, referringTo("shelf"))
		<-reached
		if at != answered {
			require.NotContains(t, r.data(t, r.namespace, name).Data, "value", "the record comes before the object")
		}
		r.manager.Kill(t)
		release()
		r.again(r.whole, r.flags...)
		r.delivered(t, name)
		require.Len(t, r.shelf.names(), 1, "the same name again")
		r.remove(t, name)
		r.gone(t, name)
		r.empty(t)
	}
	// One that is deleted before it was stored leaves nothing.
	reached, release := r.shelf.hold(kept)
	r.machine(t, "light", "killed-before", referringTo("shelf"))
	<-reached
	r.manager.Kill(t)
	release()
	require.Len(t, r.shelf.names(), 1)
	r.remove(t, "killed-before")
	r.again(r.whole, r.flags...)
	r.gone(t, "killed-before")
	r.empty(t)
}

// refused: what is wrong with a storage is a condition with storage, provider and remedy, before anything is stored; and data is made when
// it is corrected.
func (r *objectRig) refused(t *testing.T) {
	r.keeping(t, "open", func(source map[string]any) {
		source["providerConfig"] = map[string]any{"ca": string(r.shelf.ca.Certificate)}
	})
	r.keeping(t, "other", func(source map[string]any) { source["provider"] = "gcs" })
	r.keeping(t, "plain", func(source map[string]any) {
		source["uriPrefix"] = "http://" + strings.TrimPrefix(r.shelf.url, "https://") + "/"
	})
	r.keeping(t, "signed", func(source map[string]any) { source["access"] = bootstrap.AccessPresigned })
	r.keeping(t, "keyless", func(source map[string]any) {
		source["providerConfig"] = map[string]any{"bearer": valueFrom("absent")}
	})
	r.keeping(t, "wrong", func(source map[string]any) {
		source["providerConfig"] = map[string]any{"ca": string(r.shelf.ca.Certificate), "bearer": valueFrom("wrong"), "read": map[string]any{"bearer": valueFrom("reader")}}
	})
	r.put(t, secret("wrong", map[string]string{"value": "another"}))
	for storage, text := range map[string]string{
		"open":    "spec.source.providerConfig: refers to no Secret with credentials",
		"other":   "remedy: start the manager with --storage-providers=gcs",
		"plain":   "spec.source.uriPrefix: ",
		"signed":  "spec.source.access: ",
		"keyless": "Secret absent does not exist in namespace default: create it",
		"wrong":   "store the documents by provider http: ",
	} {
		r.machine(t, "light", "refused-"+storage, referringTo(storage))
		r.condition(t, bootstrap.ConditionReady, map[bool]metav1.ConditionStatus{false: "False", true: "Unknown"}[storage == "keyless"],
			"DataStored: MachineBootstrapStorage "+storage+": ", "refused-"+storage)
		r.condition(t, bootstrap.ConditionDataStored, map[bool]metav1.ConditionStatus{false: "False", true: "Unknown"}[storage == "keyless"], text, "refused-"+storage)
	}
	require.Empty(t, r.shelf.names())
	r.put(t, secret("wrong", map[string]string{"value": writerToken}))
	r.delivered(t, "refused-wrong")
	for _, storage := range []string{"open", "other", "plain", "signed", "keyless", "wrong"} {
		r.remove(t, "refused-"+storage)
		r.gone(t, "refused-"+storage)
	}
	r.empty(t)
}

// busy: a store that does not answer, asks for a pause, or is full, is tried again.
func (r *objectRig) busy(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusInsufficientStorage} {
		name := fmt.Sprintf("busy-%d", status)
		r.shelf.answer(status)
		r.machine(t, "light", name, referringTo("shelf"))
		r.condition(t, bootstrap.ConditionDataStored, "Unknown", fmt.Sprintf("answers with the status %d (%s)", status, http.StatusText(status)), name)
		require.Empty(t, r.shelf.names())
		r.shelf.answer(0)
		r.delivered(t, name)
		r.remove(t, name)
		r.gone(t, name)
	}
	r.shelf.answer(http.StatusServiceUnavailable)
	r.machine(t, "light", "busy", referringTo("shelf"))
	r.condition(t, bootstrap.ConditionReady, "Unknown", "DataStored: MachineBootstrapStorage shelf: store the documents by provider http: ", "busy")
	r.shelf.answer(0)
	r.delivered(t, "busy")
	// A store that is away when the config is deleted keeps the Secret, and not the config.
	r.shelf.answer(http.StatusServiceUnavailable)
	r.remove(t, "busy")
	var configs bootstrap.MachineBootstrapConfigList
	management.Await(t, r, limit, &configs, func() error {
		if len(configs.Items) > 0 {
			return fmt.Errorf("config %s is there", configs.Items[0].Name)
		}
		return nil
	}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": "busy"})
	require.NotEmpty(t, r.shelf.names())
	r.shelf.answer(0)
	r.gone(t, "busy")
	r.empty(t)
}

// left: a machine pool has no object store, and a ReportTarget no place in one.
func (r *objectRig) left(t *testing.T) {
	spec := referringTo("shelf")
	spec["format"] = map[string]any{"type": bootstrap.FormatTalos}
	r.machine(t, "light", "talos", spec)
	r.condition(t, bootstrap.ConditionReady, "False", "the format talos has no storage", "talos")
	both := made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapStorage, "both", map[string]any{"spec": map[string]any{
		"server": map[string]any{}, "source": map[string]any{"provider": "http", "uriPrefix": "https://example.com/"},
	}})
	both.SetNamespace(r.namespace)
	require.ErrorContains(t, r.Create(t.Context(), both), "must have either server or source")
}

// canaries: no token and no document is in a log, an event, a status, an audit log or what etcd has beside Secrets.
func (r *objectRig) canaries(t *testing.T) {
	secrets := map[string][]byte{"writer": []byte(writerToken), "reader": []byte(readerToken), "documents": []byte(storedSecret)}
	places := r.rig.stored(t)
	log, err := os.ReadFile(r.manager.Log)
	require.NoError(t, err)
	require.Contains(t, string(log), "plugin started")
	places["log"] = log
	places["audit"], err = json.Marshal(r.Audit(t))
	require.NoError(t, err)
	absent(t, secrets, places)
	status := "/proc/" + fmt.Sprint(r.manager.PID()) + "/task"
	tasks, err := os.ReadDir(status)
	require.NoError(t, err)
	found := 0
	for _, task := range tasks {
		children, err := os.ReadFile(status + "/" + task.Name() + "/children")
		if err != nil { // the thread has ended
			continue
		}
		for _, pid := range strings.Fields(string(children)) {
			for _, file := range []string{"environ", "cmdline"} {
				text, err := os.ReadFile("/proc/" + pid + "/" + file)
				require.NoError(t, err)
				absent(t, secrets, map[string][]byte{file: text})
			}
			found++
		}
	}
	require.Equal(t, 1, found, "one process for the provider that was called last")
}
