package linuxjoin

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

const (
	krb5Conf = "/etc/krb5.conf"
	krb5Own  = "/etc/krb5.conf.d/machineadm.conf"
	// include is what krb5.conf begins with where the distribution does not include the directory.
	include  = "# machineadm: the realm of a DomainJoin document.\nincludedir /etc/krb5.conf.d\n"
	sssdConf = "/etc/sssd/sssd.conf"
	sssdOwn  = "/etc/sssd/conf.d/machineadm.conf"
	sssd     = "sssd.service"
)

// planFiles adds what the programs that use the membership read.
func (j *join) planFiles(ctx context.Context, result *sdk.Plan) error {
	if err := j.planKrb5Conf(result); err != nil {
		return err
	}
	if !j.s.SSSD {
		return nil
	}
	return sdk.At(j.planSSSD(ctx, result), "spec.sssd.manage")
}

func (j *join) planKrb5Conf(result *sdk.Plan) error {
	if !j.s.Krb5Conf {
		return nil
	}
	m := j.m.Field("spec.krb5Conf")
	own, err := sdk.File(m, sdk.FileSpec{Path: krb5Own, Content: j.krb5(), Mode: 0o644, Absent: j.s.Absent})
	if err != nil {
		return sdk.At(err, "spec.krb5Conf")
	}
	main, err := j.krb5Main(m)
	if err != nil {
		return sdk.At(err, "spec.krb5Conf")
	}
	result.Add(own, main)
	return nil
}

// krb5Main includes the directory in krb5.conf, or ends that.
func (j *join) krb5Main(m sdk.Machine) (*sdk.Change, error) {
	data, err := m.FS.ReadFile(krb5Conf)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	text, mode := string(data), fs.FileMode(0o644)
	if info, err := m.FS.Stat(krb5Conf); err == nil {
		mode = info.Mode.Perm()
	}
	spec := sdk.FileSpec{Path: krb5Conf, Mode: mode, Part: &sdk.Part{Name: "includedir"}}
	if j.s.Absent {
		if text == "" {
			return nil, nil //nolint:nilnil // there is no file, and none is wanted
		}
		left := strings.TrimPrefix(text, include)
		spec.Content, spec.Absent = []byte(left), left == ""
		return sdk.File(m, spec)
	}
	// MIT Kerberos reads these at the beginning of a line alone.
	included := regexp.MustCompile(`(?m)^(includedir[ \t]+/etc/krb5\.conf\.d/?|include[ \t]+` + regexp.QuoteMeta(krb5Own) + `)[ \t\r]*$`)
	if !included.MatchString(text) {
		text = include + text
	}
	spec.Content, spec.Part.Content = []byte(text), []byte(include)
	return sdk.File(m, spec)
}

// krb5 renders the realm. Its controllers are found by DNS, unless the document names them.
func (j *join) krb5() []byte {
	var b strings.Builder
	line := func(parts ...string) { b.WriteString(strings.Join(parts, "") + "\n") }
	line("# Written by machineadm for a DomainJoin document.")
	line("[libdefaults]")
	line("\tdefault_realm = ", j.s.Realm)
	line("\tdns_lookup_kdc = true")
	line("\trdns = false")
	line("[realms]")
	line("\t", j.s.Realm, " = {")
	for _, server := range j.s.Servers {
		line("\t\tkdc = ", server)
	}
	if len(j.s.Servers) > 0 {
		line("\t\tkpasswd_server = ", j.s.Servers[0])
	}
	line("\t}")
	line("[domain_realm]")
	line("\t.", j.s.Domain, " = ", j.s.Realm)
	line("\t", j.s.Domain, " = ", j.s.Realm)
	if j.s.FQDN != "" && !strings.HasSuffix(j.s.FQDN, "."+j.s.Domain) {
		line("\t", j.s.FQDN, " = ", j.s.Realm)
	}
	return []byte(b.String())
}

// planSSSD configures sssd for this domain, or ends that.
func (j *join) planSSSD(ctx context.Context, result *sdk.Plan) error {
	m := j.m.Field("spec.sssd")
	if j.s.Absent {
		change, err := sdk.Absent(m, sssdOwn)
		if err != nil || change == nil {
			return err
		}
		no := false
		stop, err := sdk.ServiceState(ctx, m, sssd, sdk.ServiceSpec{Enabled: &no, Running: &no})
		result.Add(append(stop, change)...) // the file goes last: it says that sssd was ours
		return err
	}
	data, err := m.FS.ReadFile(sssdConf)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if other := regexp.MustCompile(`(?m)^[ \t]*domains[ \t]*=[ \t]*\S`); other.Match(data) {
		return sdk.Precondition(sssdConf+" names domains, which this one would replace", "remove them there, or leave sssd to that file")
	}
	if err := snippets(m, sssdOwn, j.sssd()); err != nil {
		return err
	}
	changes, err := sdk.Activate(ctx, m, sdk.Activation{
		Unit: sssd, Enable: true, Files: []sdk.FileSpec{{Path: sssdOwn, Content: j.sssd(), Mode: 0o600}},
	})
	result.Add(changes...)
	return err
}

// sssd renders the domain. It leaves the renewal of the keys at the default of sssd, because the plugin renews none.
func (j *join) sssd() []byte {
	servers := ""
	if len(j.s.Servers) > 0 {
		servers = "ad_server = " + strings.Join(j.s.Servers, ", ") + "\n"
	}
	return []byte(`# Written by machineadm for a DomainJoin document.
[sssd]
services = nss, pam
domains = ` + j.s.Domain + `
[domain/` + j.s.Domain + `]
id_provider = ad
access_provider = ad
ad_domain = ` + j.s.Domain + `
krb5_realm = ` + j.s.Realm + `
` + servers + `ad_hostname = ` + j.s.FQDN + `
krb5_keytab = ` + j.s.Keytab.Path + `
ldap_sasl_authid = ` + j.s.Computer + `$@` + j.s.Realm + `
`)
}
