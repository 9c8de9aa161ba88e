package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/session"
	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/version"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	want := "machineadm " + version.String() + "\n"
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if got := execute(t, nil, args...); got.code != report.ExitOK || got.out != want || got.errOut != "" {
			t.Errorf("%q: %s", args, got)
		}
	}
}

// infos is what plugins list and inspect write as JSON.
func infos(t *testing.T, r result) []session.Plugin {
	t.Helper()
	var out []session.Plugin
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || out == nil {
		t.Fatalf("%v: %s", err, r)
	}
	return out
}

func TestPluginsWithoutAny(t *testing.T) {
	for _, verb := range []string{"list", "inspect"} {
		b := newBench(t)
		got := b.run("plugins", verb)
		if got.code != report.ExitOK || got.out != "" || !strings.HasPrefix(got.errOut, "no plugin is installed in any of "+b.plugins+", /usr/local/libexec/machineadm, ") {
			t.Errorf("%s: %s", verb, got)
		}
		if got := b.run("plugins", verb, "-o", "json"); got.code != report.ExitOK || len(infos(t, got)) != 0 {
			t.Errorf("%s: %s", verb, got)
		}
	}
}

func TestPlugins(t *testing.T) {
	b := newBench(t)
	b.noop(`{"reason": "because\u001b[31m"}`)
	b.install(sysctlBinary, sysctlBinary, "")
	write(t, filepath.Join(b.plugins, "machineadm-notes.txt"), "no plugin")
	got := b.run("plugins", "list")
	want := `^KIND +PROVIDER +VERSION +FITNESS +STATUS +PATH
Noop +test +\S+ +\S+ +Trusted +` + filepath.Join(b.plugins, testPlugin) + `
Sysctl +procfs +\S+ +active +Trusted +` + filepath.Join(b.plugins, sysctlBinary) + `
$`
	if got.code != report.ExitOK || !regexp.MustCompile(want).MatchString(got.out) || got.errOut != "" {
		t.Errorf("list: %s\nwant:\n%s", got, want)
	}
	listed := infos(t, b.run("plugins", "list", "-o", "json"))
	got = b.run("plugins", "inspect", "-o", "json")
	if got.code != report.ExitOK {
		t.Fatalf("inspect: %s", got)
	}
	for i, info := range infos(t, got) {
		if info.Binary != listed[i].Binary || info.SHA256 != listed[i].SHA256 || len(info.SHA256) != 64 || !info.Trusted ||
			info.Version == "" || info.Fitness == "" || len(info.Kinds) != 1 || listed[i].Version != info.Version {
			t.Errorf("inspected %+v, listed %+v", info, listed[i])
		}
	}
	got = b.run("plugins", "inspect", testPlugin)
	if got.code != report.ExitOK || !strings.Contains(got.out, `because\x1b[31m`) || strings.Contains(got.out, "Sysctl") {
		t.Errorf("inspect one: %s", got)
	}
}

// TestPluginsForAnImage: the fitness is that for the image.
func TestPluginsForAnImage(t *testing.T) {
	b := newBench(t)
	b.install(sysctlBinary, sysctlBinary, "")
	for _, verb := range []string{"list", "inspect"} {
		for image, want := range map[string]string{"": "active", b.root: "installed"} {
			args := []string{"plugins", verb, "-o", "json"}
			if image != "" {
				args = append(args, "--root", image)
			}
			got := b.run(args...)
			if all := infos(t, got); got.code != report.ExitOK || len(all) != 1 || all[0].Fitness != want {
				t.Errorf("%s of %q: %s", verb, image, got)
			}
		}
	}
	if got := b.run("plugins", "list", "--root", filepath.Join(b.dir, "none")); got.code != report.ExitUsage || !strings.Contains(got.errOut, "none") {
		t.Errorf("a root that is not there: %s", got)
	}
}

// TestValidateForAnImage: to which systems a document applies is compared with the image.
func TestValidateForAnImage(t *testing.T) {
	b := newBench(t)
	path := b.stream("apiVersion: example.com/v1\nkind: Firewall\nmetadata: {name: node, when: {distributions: [alpine]}}\nspec: {}\n")
	for id, want := range map[string]int{"alpine": report.ExitPrecondition, "slackware": report.ExitOK} {
		image := filepath.Join(b.dir, id)
		write(t, filepath.Join(image, "etc/os-release"), "ID="+id+"\n")
		if got := b.run("validate", "--path", path, "--root", image); got.code != want {
			t.Errorf("%s: %s", id, got)
		}
	}
}

func TestPluginsThatAreNotInOrder(t *testing.T) {
	b := newBench(t)
	witness := filepath.Join(b.dir, "witness")
	path := b.noop(`{"witness": "` + witness + `"}`)
	b.install(noopBinary, "machineadm-noop-plugin-broken", `{"start": "crash", "say": "w0rds\u001b"}`)
	if err := os.Chmod(path, 0o757); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	for _, command := range []string{"list", "inspect"} {
		got := b.run("plugins", command)
		if got.code != report.ExitUntrusted || !strings.Contains(got.out, "can be written by everyone") || !strings.Contains(got.out, "chmod go-w "+path) {
			t.Errorf("%s: %s", command, got)
		}
		if !regexp.MustCompile(`<unknown> +test +<unknown> +<unknown> +Untrusted `).MatchString(got.out) != (command == "inspect") {
			t.Errorf("%s: %s", command, got)
		}
		if shown := strings.Contains(got.out, `w0rds\x1b`); shown != (command == "inspect") {
			t.Errorf("%s: last words are shown: %v; %s", command, shown, got)
		}
	}
	if exists(t, witness) {
		t.Error("an untrusted plugin was started")
	}
	if got := b.run("plugins", "inspect", "machineadm-noop-plugin-broken"); got.code != report.ExitFailed {
		t.Errorf("%s", got)
	}
	got := b.run("plugins", "inspect", "machineadm-noop-plugin-absent")
	if got.code != report.ExitPrecondition || !strings.Contains(got.errOut, "is not installed in any of "+b.plugins) || !strings.Contains(got.errOut, "hint: install it") {
		t.Errorf("%s", got)
	}
}

// TestExplainOfAThirdParty: the schema comes from the plugin that serves the kind, through a process.
func TestExplainOfAThirdParty(t *testing.T) {
	b := newBench(t)
	kinds := func(schema string) string {
		return `{"kinds": [{"apiVersion": "example.com/v1", "kind": "Noop"` + schema + `}]}`
	}
	const schema = `, "schema": {"description": "Noop does nothing.", "properties": {"spec": {"type": "object", "required": ["touch"],
		"properties": {"touch": {"type": "array", "description": "Files to write.", "items": {"type": "string"}}}}}}`
	for _, c := range []struct {
		script, what string
		exit         int
		out, errOut  string
	}{
		{kinds(schema), "Noop", report.ExitOK, "KIND:        Noop\nAPI VERSION: example.com/v1\n\nDESCRIPTION:\n  Noop does nothing.\n\n" +
			"FIELDS:\n  touch <list of string> -required-\n    Files to write.\n", ""},
		{kinds(schema), "Noop.touch", report.ExitOK, "FIELD:       touch <list of string>\n\nDESCRIPTION:\n  Files to write.\n", ""},
		{kinds(schema), "Noop.tuch", report.ExitUsage, "", "Noop: there is no field tuch\n  hint: machineadm explain Noop --recursive"},
		{kinds(""), "Noop", report.ExitPrecondition, "", "no installed plugin has a JSON schema of the kind Noop\n  hint: see the documentation"},
		{kinds(`, "schema": "no object"`), "Noop", report.ExitFailed, "", "the JSON schema of Noop cannot be read"},
		{kinds(schema), "Foreign", report.ExitPrecondition, "", "machineadm-foreign-plugin-"},
		{`{"start": "crash"}`, "Noop", report.ExitFailed, "", "plugin " + testPlugin},
	} {
		b.noop(c.script)
		got := b.run("explain", c.what)
		assert.Equal(t, c.exit, got.code, got.String())
		assert.Contains(t, got.out, c.out)
		assert.Contains(t, got.errOut, c.errOut)
		assert.Equal(t, c.exit == report.ExitOK, got.errOut == "", got.errOut)
		assert.Equal(t, c.exit == report.ExitOK, got.out != "", got.out)
	}
}

func TestStatus(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	got := b.run("status")
	if got.code != report.ExitFailed || !strings.Contains(got.errOut, "there is no report in "+b.runs) || !strings.Contains(got.errOut, "hint: run machineadm apply") {
		t.Errorf("before any run: %s", got)
	}
	b.apply(noopDoc("a", "touch: [a], apply: fail"))
	got = b.run("status")
	first, _, _ := strings.Cut(got.out, "\n")
	if got.code != report.ExitOK || !regexp.MustCompile(`^Failed at Noop/a while applying: .*noop says fail.*ask noop.*safe`).MatchString(first) {
		t.Errorf("a failed run: %s", got)
	}
	if !strings.Contains(got.out, "report: "+filepath.Join(b.runs, "report.json")) {
		t.Errorf("status does not say where the report is: %s", got)
	}
	var last report.Report
	if err := json.Unmarshal([]byte(b.run("status", "--output", "json").out), &last); err != nil || last.ExitCode != report.ExitPrecondition {
		t.Errorf("as JSON: %+v (%v)", last, err)
	}
	if err := os.Remove(filepath.Join(b.runs, "report.json")); err != nil { // as a reboot does
		t.Fatal(err)
	}
	if got := b.run("status"); got.code != report.ExitOK || !strings.Contains(got.out, "report: "+b.state) {
		t.Errorf("after a reboot: %s", got)
	}
}

// TestStatusOfARunOnAnImage: such a run holds the image's lock, not the run directory's.
func TestStatusOfARunOnAnImage(t *testing.T) {
	b := newBench(t)
	data, err := json.Marshal(report.Report{APIVersion: report.APIVersion, Kind: report.Kind, Outcome: report.RunRunning, Root: b.root})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(b.runs, "report.json"), string(data))
	lock, err := state.Acquire(b.root)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.run("status"); !strings.HasPrefix(got.out, "Running") {
		t.Errorf("while it runs: %s", got)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if got := b.run("status"); !strings.HasPrefix(got.out, "Interrupted") {
		t.Errorf("when it is gone: %s", got)
	}
}

// TestWordsOfAPluginAreKeptSomewhere: a run that keeps no report has no place for them.
func TestWordsOfAPluginAreKeptSomewhere(t *testing.T) {
	b := newBench(t)
	b.noop(`{"start": "crash"}`)
	stream := b.stream(noopDoc("a", ""))
	for _, args := range [][]string{
		{"apply", "--root", b.root, "--path", stream},
		{"plan", "--root", b.root, "--path", stream},
		{"validate", "--path", stream},
	} {
		got := execute(t, nil, append([]string{"--plugin-dir", b.plugins}, args...)...)
		found := regexp.MustCompile(`report: (\S+)/report\.json \(remove`).FindStringSubmatch(got.errOut)
		if got.code != report.ExitFailed || found == nil {
			t.Errorf("%s: %s", args[0], got)
			continue
		}
		details, err := os.ReadFile(filepath.Join(found[1], "details.json"))
		if err != nil || !strings.Contains(string(details), "crashing before the handshake") {
			t.Errorf("%s: details %q (%v)", args[0], details, err)
		}
		if info, err := os.Stat(found[1]); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: the directory is %v (%v)", args[0], info, err)
		}
		if err := os.RemoveAll(found[1]); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingOfARunIsLeft: a run without directories of its own cleans up, and a live one leaves others' files alone.
func TestNothingOfARunIsLeft(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	temp := filepath.Join(b.dir, "t")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	stream := b.stream(noopDoc("a", "touch: [a]"))
	if got := execute(t, nil, "--plugin-dir", b.plugins, "apply", "--root", b.root, "--path", stream); got.code != report.ExitOK {
		t.Fatalf("%s", got)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v (%v)", left, err)
	}
	other := filepath.Join(b.runs, "machineadm-backup", "precious")
	stale := filepath.Join(b.runs, ".sockets-123", "socket")
	write(t, other, "")
	write(t, stale, "")
	if got := b.run("apply", "--root", b.root, "--path", stream); got.code != report.ExitOK || !exists(t, other) || !exists(t, stale) {
		t.Errorf("a run on an image cleaned up the run directory: %s", got)
	}
	if got := b.run("apply", "--path", b.stream(noopDoc("a", "plan: precondition"))); got.code != report.ExitPrecondition || !exists(t, other) || exists(t, stale) {
		t.Errorf("a live run removed more than stale sockets: %s", got)
	}
}
