package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// The names under which the scripted plugin serves a source and a key provider.
const (
	sourcePlugin = "machineadm-remote-configuration-provider-test"
	keysPlugin   = "machineadm-plugin-encryption-provider-test"
)

const reportCanary = "c4n4ry-of-the-destination"

// ourDoc is a document of the contract.
func ourDoc(kind, name, spec string) string {
	return "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {provider: test, " + spec + "}\n"
}

// home is a document by which a run reports, with a secret for the plugin.
func home() string {
	return ourDoc("ReportTarget", "home", "uri: test://home, providerConfig: {token: {value: "+reportCanary+"}}")
}

// source installs a source with this script, or changes its script.
func (b *bench) source(script map[string]any) {
	b.t.Helper()
	script["reports"], script["log"] = filepath.Join(b.dir, "reports"), filepath.Join(b.dir, "source.log")
	data, err := json.Marshal(map[string]any{"source": script, "witness": filepath.Join(b.dir, "source.process")})
	require.NoError(b.t, err)
	if !exists(b.t, filepath.Join(b.plugins, sourcePlugin)) {
		b.t.Cleanup(b.removeTimer)
	}
	b.scripted(sourcePlugin, string(data))
}

// removeTimer removes the timer that a report which waits has on a machine with systemd.
func (b *bench) removeTimer() {
	var out bytes.Buffer
	err := os.RemoveAll(b.state)
	code := Execute(context.Background(), b.flags("report", "send"), streams{in: strings.NewReader(""), out: &out, err: &out})
	if err != nil || code != report.ExitOK {
		b.t.Errorf("exit %d: %s (%v)", code, out.String(), err)
	}
}

// scripted installs a scripted plugin, or changes the script of one that can be running.
func (b *bench) scripted(as, script string) {
	b.t.Helper()
	if path := filepath.Join(b.plugins, as); exists(b.t, path) {
		write(b.t, path+".script", script)
		return
	}
	b.install(noopBinary, as, script)
}

// failing is a script in which no report arrives until the file "up" exists.
func (b *bench) failing(answer string) map[string]any {
	return map[string]any{"report": map[string]any{"answer": answer, "until": filepath.Join(b.dir, "up")}}
}

// live applies a stream to the live machine, without the phase that would write the sentinel.
func (b *bench) live(stream string, args ...string) result {
	b.t.Helper()
	return b.run(append([]string{"apply", "--phase", "preparation", "--path", b.stream(stream)}, args...)...)
}

// touch is a document that makes a file in the bench.
func (b *bench) touch(name string) string {
	return noopDoc(name, "touch: ["+filepath.Join(b.dir, "touched", name)+"]")
}

// arrived is a report at its destination.
type arrived struct {
	Kind, URI string
	Sequence  uint64
	Report    report.Report
}

// arrivals returns the reports that arrived.
func (b *bench) arrivals() []arrived {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "reports"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(b.t, err)
	var all []arrived
	for line := range strings.Lines(string(data)) {
		var a arrived
		require.NoError(b.t, json.Unmarshal([]byte(line), &a))
		all = append(all, a)
	}
	return all
}

// waiting returns the report in the outbox, nil for none.
func (b *bench) waiting() *state.Outgoing {
	b.t.Helper()
	o, err := state.OutboxIn(b.state).Load()
	require.NoError(b.t, err)
	return o
}

// nowhere fails when a file of the state or run directory holds the text.
func (b *bench) nowhere(text string) {
	b.t.Helper()
	for _, dir := range []string{b.state, b.runs} {
		require.NoError(b.t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			assert.NotContains(b.t, string(data), text, path)
			return err
		}))
	}
}

// process is the host as a process of its own, unstarted.
func (b *bench) process(args ...string) *exec.Cmd {
	return exec.CommandContext(b.t.Context(), filepath.Join(built, hostBinary), b.flags(args...)...)
}

func (b *bench) up() { write(b.t, filepath.Join(b.dir, "up"), "") }
