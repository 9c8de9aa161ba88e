package resume

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

func TestUnitText(t *testing.T) {
	t.Parallel()
	golden(t, "plain.service", unitText([]string{"/usr/bin/machineadm", "apply", "--resume"}, "/var/lib/machineadm", "/var/lib/machineadm/resume.json"))
	golden(t, "odd.service", unitText([]string{
		"/opt/my tools/machineadm", "apply", "--resume", "--state-dir", `/srv/100%/$HOME/"a"\b`, "--run-dir", "/run/a;b",
	}, `/srv/100%/$HOME/"a"\b`, `/srv/100%/$HOME/"a"\b/resume.json`))
	golden(t, "report.service", reportServiceText([]string{"/usr/bin/machineadm", "report", "send"}, "/var/lib/machineadm"))
	golden(t, "report.timer", reportTimerText())
}

func TestTaskXML(t *testing.T) {
	t.Parallel()
	golden(t, "task.xml", decodeTask(t, resumeTask([]string{
		`C:\Program Files\machineadm\machineadm.exe`, "apply", "--resume", "--state-dir", `D:\my state\`, "--run-dir", `D:\a&b "c"`,
	})))
	golden(t, "report-task.xml", decodeTask(t, reportTaskXML([]string{`C:\Program Files\machineadm\machineadm.exe`, "report", "send"})))
}

func decodeTask(t *testing.T, raw []byte) string {
	t.Helper()
	if len(raw)%2 != 0 || raw[0] != 0xff || raw[1] != 0xfe {
		t.Fatalf("no UTF-16 with a byte order mark: % x ...", raw[:4])
	}
	units := make([]uint16, 0, len(raw)/2)
	for i := 2; i < len(raw); i += 2 {
		units = append(units, uint16(raw[i])|uint16(raw[i+1])<<8)
	}
	return string(utf16.Decode(units))
}
