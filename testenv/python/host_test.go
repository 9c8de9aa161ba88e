package python

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/foreign"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	canary      = "c4n4ry-of-the-repository"
	nodeYAML    = foreign.Stream
	credentials = "/etc/apt/auth.conf.d/machineadm-site.conf"
)

// stream names no provider: the host finds the one that is installed.
const stream = `apiVersion: apt.example.org/v1
kind: AptRepository
metadata: {name: site}
spec:
  uris: [https://packages.example.org/debian]
  suites: [stable]
  components: [main, contrib]
  signedBy: |
    -----BEGIN PGP PUBLIC KEY BLOCK-----

    mDMEAAAAABYJKwYBBAHaRw8BAQdAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
    =AAAA
    -----END PGP PUBLIC KEY BLOCK-----
  credentials: {login: node, password: {value: ` + canary + `}}
---
apiVersion: apt.example.org/v1
kind: AptRepository
metadata: {name: local}
spec:
  uris: [file:///srv/packages]
  suites: [./]
`

// TestHost: the host drives the plugin on a live machine, where apt itself says what it understands.
//
//machineadm:core
func TestHost(t *testing.T) {
	t.Parallel()
	for _, suite := range nodes.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			t.Parallel()
			n := boot(t, suite, stream)
			n.MustExec(t, "touch", "/run/before")
			if got := n.Host(t, report.ExitOK, "plugins", "inspect").Stdout; !strings.Contains(got, "active: apt is installed") {
				t.Errorf("plugins inspect:\n%s", got)
			}
			plan := n.Host(t, report.ExitDiffers, "plan", "--path", nodeYAML).Stdout
			for _, want := range []string{
				"+URIs: https://packages.example.org/debian", "create " + credentials, "content differs",
				"2 documents: 2 to change, 0 unchanged, 0 deferred",
			} {
				if !strings.Contains(plan, want) {
					t.Errorf("the plan does not say %q:\n%s", want, plan)
				}
			}
			n.Host(t, report.ExitOK, "apply", "--path", nodeYAML)
			const warning = "\nwarning spec.signedBy: is left out: every key that apt trusts will do"
			want := "AptRepository/site (deb822) Changed\nAptRepository/local (deb822) Changed" + warning
			if got := n.Outcomes(t); got != want {
				t.Errorf("outcomes\n%s\nwant\n%s", got, want)
			}
			understood(t, n)
			repeated(t, n, warning)
			n.MustExec(t, "sh", "-c", `test -z "$(find /usr -newer /run/before)"`)
			n.KeepsSecret(t, credentials, nodeYAML)
		})
	}
}

// understood asks apt.
func understood(t *testing.T, n *foreign.Node) {
	t.Helper()
	got := n.MustExec(t, "apt-get", "indextargets", "--no-release-info",
		"--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages").Stdout
	for _, want := range []string{
		"https://packages.example.org/debian/ stable main\n",
		"https://packages.example.org/debian/ stable contrib\n",
		"file:/srv/packages/ ./",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("apt does not know %q, but\n%s", want, got)
		}
	}
	if got := n.MustExec(t, "stat", "-c", "%a %U", credentials).Stdout; got != "600 root\n" {
		t.Errorf("mode and owner of the credentials: %s", got)
	}
	if got := n.MustExec(t, "cat", credentials).Stdout; got != "machine packages.example.org/debian\nlogin node\npassword "+canary+"\n" {
		t.Errorf("credentials:\n%s", got)
	}
}

// repeated runs the stream again, which changes nothing, and once more after another user changed a mode, which is restored.
func repeated(t *testing.T, n *foreign.Node, warning string) {
	t.Helper()
	n.Host(t, report.ExitOK, "plan", "--path", nodeYAML)
	n.Host(t, report.ExitOK, "apply", "--path", nodeYAML)
	want := "AptRepository/site (deb822) Unchanged\nAptRepository/local (deb822) Unchanged" + warning
	if got := n.Outcomes(t); got != want {
		t.Errorf("outcomes\n%s\nwant\n%s", got, want)
	}
	n.MustExec(t, "chmod", "0644", credentials)
	n.Host(t, report.ExitOK, "apply", "--path", nodeYAML)
	if got := n.MustExec(t, "stat", "-c", "%a", credentials).Stdout; got != "600\n" {
		t.Errorf("mode of the credentials: %s", got)
	}
}

// TestRoomForTheSocket: the longest names that the contract has for it. The plugin's own part has 16 bytes.
func TestRoomForTheSocket(t *testing.T) {
	t.Parallel()
	n := boot(t, nodes.Bookworm, stream)
	for _, length := range []int{20, 40, 41, 80} { // 40 is the longest in which the host makes the socket's directory
		dir := "/run/" + strings.Repeat("r", length-len("/run/"))
		n.Host(t, report.ExitOK, "apply", "--path", nodeYAML, "--run-dir", dir)
	}
}

// TestRefusals: what the plugin says of a document arrives whole, with its place in the stream.
func TestRefusals(t *testing.T) {
	t.Parallel()
	n := boot(t, nodes.Bookworm, stream)
	write := func(text string) {
		t.Helper()
		if _, err := n.ExecInput(t.Context(), strings.NewReader(text), "sh", "-c", "umask 077; cat >/run/wrong.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("violations", func(t *testing.T) {
		write(strings.NewReplacer("https://packages", "ftp://packages", "login: node", "login: ["+canary+"]", "suites: [./]", "suites: []").Replace(stream))
		for _, command := range []string{"validate", "plan", "apply"} {
			got := n.Host(t, report.ExitUsage, command, "--path", "/run/wrong.yaml").Stderr
			for _, want := range []string{
				"wrong.yaml:5:10: AptRepository/site: spec.uris[0]: must be a URI",
				"wrong.yaml:14:17: AptRepository/site: spec.credentials.login: must be a word",
				"wrong.yaml:21:3: AptRepository/local: spec.suites: is required\n  hint: name a suite",
			} {
				if !strings.Contains(got, want) {
					t.Errorf("%s does not say %q:\n%s", command, want, got)
				}
			}
		}
	})
	t.Run("thousands of violations", func(t *testing.T) {
		// They travel in the trailers of a call, which are not as large as its messages.
		var wrong strings.Builder
		wrong.WriteString(stream[strings.Index(stream, "\n---\n"):])
		for i := range 3000 {
			fmt.Fprintf(&wrong, "  unknown%04d: x\n", i)
		}
		write(wrong.String())
		got := n.Host(t, report.ExitUsage, "validate", "--path", "/run/wrong.yaml").Stderr
		if said := strings.Count(got, ": is not known"); said != document.MaxErrors || !strings.Contains(got, " more errors") {
			t.Errorf("it says %d of them:\n%s", said, got)
		}
	})
	t.Run("precondition", func(t *testing.T) {
		write(stream)
		n.MustExec(t, "sh", "-c", "rmdir /etc/apt/keyrings && touch /etc/apt/keyrings")
		got := n.Host(t, report.ExitPrecondition, "apply", "--path", "/run/wrong.yaml").Stderr
		if !strings.Contains(got, "is no directory") || !strings.Contains(got, "hint: move it away") {
			t.Errorf("it says\n%s", got)
		}
	})
}
