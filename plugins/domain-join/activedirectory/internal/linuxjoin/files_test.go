//go:build linux

package linuxjoin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestKrb5Conf: the directory is included where it is not yet, and leaving removes what the join has added and nothing else.
func TestKrb5Conf(t *testing.T) {
	t.Parallel()
	const own = "file:" + krb5Own
	const both = own + " file:" + krb5Conf
	const (
		text     = "[libdefaults]\n\tdefault_realm = OTHER\n"
		another  = "includedir /etc/krb5.conf.d/site\n"
		similar  = "includedir /etc/krb5_conf_d\n"
		comment  = "# includedir /etc/krb5.conf.d\n"
		indented = "\tincludedir /etc/krb5.conf.d\n"
		twoLines = "includedir\n/etc/krb5.conf.d\n"
	)
	for name, tt := range map[string]struct {
		before string // a dash is an absent file
		during string
		after  string
		ids    string
	}{
		"absent":               {"-", include, "-", both},
		"empty":                {"", include, "-", both},
		"other settings":       {text, include + text, text, both},
		"included":             {"includedir /etc/krb5.conf.d\n" + text, "", "", own},
		"with a slash":         {text + "includedir /etc/krb5.conf.d/\n", "", "", own},
		"with blanks and tabs": {text + "includedir \t/etc/krb5.conf.d/ \r\n", "", "", own},
		"without a line's end": {text + "includedir /etc/krb5.conf.d", "", "", own},
		"the file included":    {"include " + krb5Own + "\n" + text, "", "", own},
		"another directory":    {another, include + another, another, both},
		"another name":         {similar, include + similar, similar, both},
		"in a comment":         {comment, include + comment, comment, both},
		"indented":             {indented, include + indented, indented, both},
		"in two lines":         {twoLines, include + twoLines, twoLines, both},
		"ours already":         {include + text, include + text, text, own},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			if tt.before != "-" {
				f.WriteFiles(t, map[string]string{krb5Conf: tt.before})
			}
			if tt.during == "" {
				tt.during, tt.after = tt.before, tt.before
			}
			require.Equal(t, tt.ids, of(f, nil).files(t))
			require.Equal(t, tt.during, read(t, f, krb5Conf))
			require.Equal(t, string(of(f, nil).krb5()), read(t, f, krb5Own))
			of(f, absent).files(t)
			_, err := f.Machine.FS.Stat(krb5Own)
			require.ErrorIs(t, err, os.ErrNotExist)
			if tt.after == "-" {
				_, err := f.Machine.FS.Stat(krb5Conf)
				require.ErrorIs(t, err, os.ErrNotExist)
				return
			}
			require.Equal(t, tt.after, read(t, f, krb5Conf))
		})
	}
}

// TestKrb5ConfMode: krb5.conf keeps its mode, and is left alone if the document says so.
func TestKrb5ConfMode(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.WriteFiles(t, map[string]string{krb5Conf: "# mine\n"})
	require.NoError(t, os.Chmod(filepath.Join(f.Root, krb5Conf), 0o640))
	before := machinetest.Tree(t, f.Root)
	require.Empty(t, of(f, func(s *settings.Settings) { s.Krb5Conf = false }).files(t))
	require.Equal(t, before, machinetest.Tree(t, f.Root))
	of(f, nil).files(t)
	require.Contains(t, machinetest.Tree(t, f.Root), "-rw-r----- "+krb5Conf)
	of(f, absent).files(t)
	require.Equal(t, "+drwxr-xr-x /etc/krb5.conf.d\n", machinetest.Diff(before, machinetest.Tree(t, f.Root)))
}

func TestRender(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*settings.Settings){
		"defaults": nil,
		"servers":  func(s *settings.Settings) { s.Servers = []string{"dc1.ad.example.test", "dc2.ad.example.test"} },
		"other-fqdn": func(s *settings.Settings) {
			s.FQDN, s.Keytab.Path = "node.example.org", "/etc/keys/host.keytab"
		},
		"image": func(s *settings.Settings) { s.FQDN, s.Computer = "", "" },
	} {
		j := of(machinetest.New(t), change)
		golden(t, name+".krb5.conf", j.krb5())
		if j.s.FQDN != "" { // sssd is not configured in an image
			golden(t, name+".sssd.conf", j.sssd())
		}
	}
}

func withSSSD(s *settings.Settings) { s.SSSD = true }

// TestSSSDNamesDomains: a main file with domains of its own stays in charge.
func TestSSSDNamesDomains(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		"":                                      false,
		"[sssd]\nservices = nss\n":              false,
		"[sssd]\n#domains = a\n;domains = b\n":  false,
		"[sssd]\ndomains =\n[nss]\n":            false,
		"[sssd]\ndomains = \n":                  false,
		"[domain/x]\nsubdomains_provider = a\n": false,
		"[sssd]\ndomains = example.org\n":       true,
		"[sssd]\n domains=example.org":          true,
	} {
		f := machinetest.New(t)
		f.Services.Put(sssd, machine.ServiceState{Exists: true})
		f.WriteFiles(t, map[string]string{sssdConf: text})
		var result sdk.Plan
		err := of(f, withSSSD).planFiles(t.Context(), &result)
		if !refused {
			require.NoError(t, err, text)
			continue
		}
		e := pluginv1.AsError(err)
		require.Equal(t, pluginv1.CodePrecondition, e.Code, text)
		require.Len(t, e.Violations, 1)
		require.Equal(t, "spec.sssd.manage", e.Violations[0].Field)
		require.Contains(t, e.Violations[0].Message, "names domains")
		require.Contains(t, e.Hint, "leave sssd to that file")
	}
}

// TestSnippets: a file of the site adds options, and one that decides otherwise than the document, or names domains, is refused by its name.
func TestSnippets(t *testing.T) {
	t.Parallel()
	domain := of(machinetest.New(t), withSSSD).s.Domain
	section := "[domain/" + domain + "]\n"
	for name, c := range map[string]struct{ file, text, says string }{
		"further options":   {"90-site.conf", section + "ldap_id_mapping = false\n[pam]\noffline_credentials_expiration = 2\n", ""},
		"further services":  {"90-site.conf", "[sssd]\nservices = nss, pam, ssh\n", ""},
		"later":             {"zz-site.conf", section + "access_provider = simple\n", "/etc/sssd/conf.d/zz-site.conf sets [domain/" + domain + "] access_provider"},
		"earlier":           {"10-site.conf", section + "access_provider = simple\n", ""},
		"the same":          {"zz-site.conf", section + "access_provider=ad\n", ""},
		"domains":           {"10-site.conf", "[sssd]\ndomains = example.net\n", "/etc/sssd/conf.d/10-site.conf names domains"},
		"hidden":            {".zz.conf", section + "access_provider = simple\n", ""},
		"another extension": {"zz.conf.bak", section + "access_provider = simple\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := machinetest.New(t)
			f.Services.Put(sssd, machine.ServiceState{Exists: true})
			f.WriteFiles(t, map[string]string{"/etc/sssd/conf.d/" + c.file: c.text})
			err := of(f, withSSSD).planFiles(t.Context(), new(sdk.Plan))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			e := pluginv1.AsError(err)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.Contains(t, e.Violations[0].Message, c.says)
		})
	}
}

// TestSSSD: the service runs with the domain, and is stopped before the file that says so goes.
func TestSSSD(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	f.Services.Put(sssd, machine.ServiceState{Exists: true})
	require.Contains(t, of(f, withSSSD).files(t), "activate:"+sssd)
	require.Contains(t, machinetest.Tree(t, f.Root), "-rw------- "+sssdOwn)
	state, err := f.Machine.Services.State(t.Context(), sssd)
	require.NoError(t, err)
	require.True(t, state.Active == "active" && state.Enabled)
	ids := of(f, func(s *settings.Settings) { s.SSSD, s.Absent = true, true }).files(t)
	require.True(t, strings.HasSuffix(ids, " file:"+sssdOwn), ids)
	state, err = f.Machine.Services.State(t.Context(), sssd)
	require.NoError(t, err)
	require.False(t, state.Active == "active" || state.Enabled)
}
