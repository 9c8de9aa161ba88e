package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files       []string // NAME -> TARGET is a link, NAME = CONTENT and NAME are files
		live, image string
	}{
		"nothing":                  {nil, InitNone, InitNone},
		"systemd":                  {[]string{"run/systemd/system/x", "usr/lib/systemd/systemd"}, InitSystemd, InitSystemd},
		"OpenRC":                   {[]string{"run/openrc/softlevel", "sbin/openrc", "sbin/init -> /bin/busybox", "proc/1/comm = init"}, InitOpenRC, InitOpenRC},
		"runit":                    {[]string{"proc/1/comm = runit", "sbin/init -> runit-init"}, InitRunit, InitRunit},
		"s6":                       {[]string{"proc/1/comm = s6-svscan", "usr/bin/s6-svscan", "sbin/init = script"}, InitS6, InitS6},
		"of several, that of init": {[]string{"lib/systemd/systemd", "sbin/init -> openrc-init"}, InitNone, InitOpenRC},
		"sysvinit":                 {[]string{"proc/1/comm = init", "sbin/init"}, InitNone, InitNone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, file := range tt.files {
				file, target, link := strings.Cut(file, " -> ")
				file, content, _ := strings.Cut(file, " = ")
				at := filepath.Join(root, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
				if link {
					require.NoError(t, os.Symlink(target, at))
				} else {
					require.NoError(t, os.WriteFile(at, []byte(content+"\n"), 0o644))
				}
			}
			require.Equal(t, []string{tt.live, tt.image}, []string{liveInit(root), imageInit(root)})
		})
	}
}
