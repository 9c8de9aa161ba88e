package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
)

// explained runs machineadm explain.
func runExplain(t *testing.T, args ...string) (exit int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	exit = Execute(t.Context(), append([]string{"explain"}, args...), streams{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return exit, stdout.String(), stderr.String()
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for args, want := range map[string][]string{
		"Sysctl": {
			"KIND:        Sysctl\nAPI VERSION: machineadm.cluster.x-k8s.io/v1alpha1\n\nDESCRIPTION:\n  Sysctl sets kernel parameters",
			"\n  parameters <mapping of names to integer or string>\n    Maps a key", "\n  modules <list of string>\n",
		},
		"Sysctl.parameters":                          {"FIELD:       parameters <mapping of names to integer or string>\n"},
		"Sysctl.spec.parameters":                     {"FIELD:       spec.parameters <mapping of names to integer or string>\n"},
		"Sysctl.metadata.when":                       {"FIELD:       metadata.when <mapping>\n", "  architectures <list of string>\n"},
		"Sysctl.metadata":                            {"  name <string> -required-\n"},
		"ContainerRuntime.registries":                {"FIELD:       registries <mapping of names to mapping>\n", "  mirrors <list of mapping>\n"},
		"ContainerRuntime.registries.mirrors[0].url": {"<string>\n"},
		"ContainerRuntime.registries.auth.password":  {"<secret {value: TEXT}>\n"},
		"ContainerRuntime.registries.KEY.server":     {"FIELD:       registries.KEY.server <string>\n"},
		"Timesync.profile":                           {"\n  One of aws, gcp, azure, vmware.\n"},
		"Timesync.pools.maxSources":                  {"\n  From 1 to 16.\n"},
		"ContainerRuntime.maxConcurrentDownloads":    {"\n  At least 1.\n"},
		"ContainerRuntime.rootDir":                   {"\n  Matches ^(?:(?:/|[A-Za-z]:\\\\).*)?$\n"},
		"DomainJoin.encryptionTypes":                 {"\n  Number of items: at least 1.\n  One of aes256-cts-hmac-sha1-96, "},
		"Timesync.providerConfig":                    {"the README of the plugin lists its fields"},
		"Timesync.waitForSync.maxOffset":             {"such as 100ms.\n", "\n  Default 1s.\n"},
		"Sysctl --example":                           {"kind: Sysctl\nmetadata:\n  name: node\nspec:\n  profiles: [kubernetes]\n"},
		"Sysctl --example=full":                      {"  # Names the plugin, for example procfs. By default the host chooses.\n  provider: procfs"},
		"ContainerRuntime --recursive":               {"\n  registries              <mapping of names to mapping>\n    server                <string>\n"},
	} {
		exit, out, errOut := runExplain(t, strings.Fields(args)...)
		assert.Equal(t, report.ExitOK, exit, "%s: %s", args, errOut)
		for _, w := range want {
			assert.Contains(t, out, w, args)
		}
		for line := range strings.Lines(out) {
			assert.LessOrEqual(t, len(line), 101, line)
		}
	}
}

func TestExplainRefuses(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                         "takes one argument, such as Sysctl",
		"Sysctl Sysctl":            "takes one argument",
		"Sysctl --example=all":     "--example is minimal or full",
		"Sysctl.modules --example": "--example prints a whole document: run machineadm explain Sysctl --example=minimal",
		"Motd --example":           "there is no example of the kind Motd",
		"sysctl":                   "did you mean Sysctl?",
		"Sysctrl":                  "did you mean Sysctl?",
		"Sysctl.parametres":        "error: Sysctl: there is no field parametres\n  hint: machineadm explain Sysctl --recursive lists the fields\n",
		"Sysctl.parameters.x.y":    "there is no field parameters.x",
		"Sysctl.modules.KEY":       "there is no field modules.KEY",
		"ContainerRuntime.auth.id": "there is no field auth",
	} {
		exit, out, errOut := runExplain(t, strings.Fields(args)...)
		assert.Empty(t, out, args)
		assert.Contains(t, errOut, want, args)
		if args != "Sysctrl" { // the plugin of a third party could have this kind
			assert.Equal(t, report.ExitUsage, exit, args)
		}
	}
}
