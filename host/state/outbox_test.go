package state

import "time"

const outboxCanary = "c4n4ry-of-a-destination"

// outgoing is a report with every field set.
func outgoing() Outgoing {
	return Outgoing{
		Version: outboxVersion, Sequence: 1, Document: []byte(`{"kind":"ReportTarget","spec":{"token":{"value":"` + outboxCanary + `"}}}`),
		Binary: "machineadm-remote-configuration-provider-http", PluginDirs: []string{"/opt/plugins"}, PluginPath: "/usr/bin",
		Proxies: []string{"HTTP_PROXY=http://proxy:3128"}, Report: []byte("{}\n"), FirstTry: time.Unix(1, 0).UTC(), NextTry: time.Unix(2, 0).UTC(),
		Tries: 1, LastTry: Clock{BootID: "boot-1", Uptime: time.Minute}, Age: time.Hour, Pause: time.Second,
	}
}
