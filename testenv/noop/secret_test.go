package main

import (
	"context"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
)

// TestSecretOfAStreamGoesNowhere puts a secret into a document and searches everything that a run leaves: output at the
// debug level, reports, state, and, while a change runs, the arguments and environment of every process of the run.
func TestSecretOfAStreamGoesNowhere(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry-in-the-stream"
	b := newBench(t)
	b.install(binary, script{})
	stream := b.stream("apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: a}\n" +
		"spec: {provider: test, touch: [a, b], apply: hang, password: {value: " + canary + "}}\n" +
		"---\napiVersion: example.com/v1\nkind: Noop\nmetadata: {name: b}\nspec: {provider: test, plan: precondition, token: {value: " + canary + "}}\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := b.command(ctx, "--log-level", "debug", "apply", "--root", b.root, "--path", stream, "--allow-secrets", "--output", "json")
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change has begun", func() bool {
		data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
		return err == nil && strings.Contains(string(data), "file:a")
	})
	seen := 0
	for _, process := range family(t, c.Process.Pid) {
		for _, what := range []string{"cmdline", "environ"} {
			data, err := os.ReadFile(filepath.Join("/proc", process, what))
			if err != nil && !os.IsPermission(err) { // not even its own user may read a process without core dumps
				t.Fatal(err)
			}
			seen += len(data)
			search(t, what+" of process "+process, string(data), canary)
		}
	}
	if seen == 0 {
		t.Error("no process of the run was found")
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the exit code is checked
	if c.ProcessState.ExitCode() != report.ExitInterrupted {
		t.Errorf("exit %d", c.ProcessState.ExitCode())
	}
	search(t, "the output", said.String(), canary)
	for _, dir := range []string{b.state, b.run, b.root} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			search(t, path, string(data), canary)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func search(t *testing.T, where, text, canary string) {
	t.Helper()
	for _, form := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary))} {
		if strings.Contains(text, form) {
			t.Errorf("the secret is in %s", where)
		}
	}
}

// family are a process and all its descendants.
func family(t *testing.T, pid int) []string {
	t.Helper()
	parents := map[string][]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, after, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(after); len(fields) > 1 {
			parents[fields[1]] = append(parents[fields[1]], filepath.Base(filepath.Dir(path)))
		}
	}
	all := []string{strconv.Itoa(pid)}
	for i := 0; i < len(all); i++ {
		all = append(all, parents[all[i]]...)
	}
	if len(all) < 2 {
		t.Fatalf("the run's processes are %q, want host and plugin at least", all)
	}
	return all
}
