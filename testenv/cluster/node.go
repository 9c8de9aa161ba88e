package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// bootLimit bounds every wait; etcd and an API server take seconds.
const bootLimit = 3 * time.Minute

// install returns the step that copies programs to where Debian's packages of Kubernetes have them.
func (v Version) install(t testing.TB, names ...string) func(root string) error {
	t.Helper()
	paths := map[string]string{}
	for _, name := range names {
		paths[name] = v.program(t, name)
	}
	return func(root string) error {
		for name, from := range paths {
			if err := require.CopyProgram(filepath.Join(root, "usr/bin", name), from); err != nil {
				return err
			}
		}
		return nil
	}
}

// write returns the step that writes files.
func write(files map[string]string) func(root string) error {
	return func(root string) error {
		for name, text := range files {
			at := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil { //nolint:gosec // the node is a test's
				return err
			}
		}
		return nil
	}
}

// awaited calls ready until it answers true, and ends the test with the last answer's reason when it does not in time.
func awaited(t testing.TB, what string, ready func() (bool, string)) {
	t.Helper()
	var why string
	for deadline := time.Now().Add(bootLimit); time.Now().Before(deadline) && t.Context().Err() == nil; {
		var ok bool
		if ok, why = ready(); ok {
			return
		}
	}
	t.Fatalf("waited for %s, %s at most: %s", what, bootLimit, why)
}

// ask is a script that asks the API server of the node that it runs on, with the credentials that
// need no rights stored in the cluster. Its arguments are a path and more arguments of curl.
const ask = `cd /run && umask 077 && sed -n 's/^ *client-\(certificate\|key\)-data: //p' /etc/kubernetes/super-admin.conf |
	while read -r pem; do printf %s "$pem" | base64 -d; done >admin.pem && path=$1 && shift &&
	exec curl --silent --show-error --fail-with-body --max-time 10 "$@" \
		--cacert /etc/kubernetes/pki/ca.crt --cert admin.pem "https://$(hostname):6443$path"`

// get returns what the API server of a control plane's node answers.
func get(t testing.TB, n *nodes.Node, path string) (nodes.Result, error) {
	t.Helper()
	return n.Exec(t.Context(), "sh", "-c", ask, "sh", path)
}

// API returns what the API server of a control plane's node answers. More are arguments of curl, such as --request.
func API(t testing.TB, n *nodes.Node, path string, more ...string) string {
	t.Helper()
	return n.MustExec(t, append([]string{"sh", "-c", ask, "sh", path}, more...)...).Stdout
}

// Get decodes what the API server of the node that created the cluster answers for a path, such as /api/v1/nodes.
func Get(t testing.TB, n *nodes.Node, path string, into any) error {
	t.Helper()
	r, err := get(t, n, path)
	if err != nil {
		return err
	}
	if r.ExitCode != 0 {
		return fmt.Errorf("%s: curl ends with exit status %d: %s%s", path, r.ExitCode, r.Stdout, r.Stderr)
	}
	return json.Unmarshal([]byte(r.Stdout), into)
}
