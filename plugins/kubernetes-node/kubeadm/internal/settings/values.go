package settings

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/internal/form"
	"github.com/machineadm/machineadm/sdk"
)

const maxValueFile = 1 << 20

var jsonKey = lazyregexp.New(`^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$`)

func (r *resolver) acceptName(text string) error {
	r.result.NodeName = text
	return checkName(text)
}

func (r *resolver) acceptIP(text string) (err error) {
	r.result.NodeIPs, err = addressesOf(text)
	if n := r.spec.Node; err == nil && r.spec.Role != Worker && n.AdvertiseAddress == "" && n.AdvertiseAddressFrom == nil {
		r.result.Advertised = r.result.NodeIPs[0]
	}
	return err
}

// acceptAdvertised accepts what kubeadm does, to which a loopback address means a global address of the interface lo, and an unspecified
// one the address of the default route of its family.
func (r *resolver) acceptAdvertised(text string) error {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		return errors.New("must be one IP address")
	case ip.Zone() != "" || ip.Is4In6():
		return errors.New(notPlain)
	case !ip.IsGlobalUnicast() && !ip.IsLoopback() && !ip.IsUnspecified():
		return errors.New("must not be a link-local or multicast address")
	}
	r.result.Advertised = ip
	return nil
}

func (r *resolver) acceptProviderID(text string) error {
	if r.result.ProviderID = text; !providerID().MatchString(text) {
		return errors.New("must have from 1 to 512 printable characters without blanks")
	}
	if !strings.Contains(text, "://") {
		r.warn("spec.node", "the provider ID has no NAME:// at its beginning, with which cloud controller managers and Cluster API compare: write it as the infrastructure provider does, such as aws:///ZONE/INSTANCE")
	}
	return nil
}

// from takes a value from the machine. What is not there yet, or is not acceptable yet, is pending.
func (r *resolver) from(at document.Path, v v1alpha1.MachineValue, accept func(string) error) {
	for i, key := range v.JSONKeys {
		r.refuse(!jsonKey().MatchString(key), (at + ".jsonKeys").Index(i), "must be names of keys, joined with dots", "write it as v1.instance_id")
	}
	if v.File != "" {
		r.path(at+".file", v.File)
	}
	if r.refused(at) || r.m.Offline() || r.err != nil {
		return
	}
	source, read := ".hostname", r.hostname
	switch {
	case v.Interface != "":
		source, read = ".interface", r.interfaceAddress
	case v.File != "":
		source, read = ".file", r.file
	}
	text, err := read(at+document.Path(source), v)
	if err == nil {
		err = accept(v.Prefix + text)
	}
	if err != nil && r.err == nil {
		r.wait(at, "the value of this machine is not usable: "+err.Error(), "correct its source on the machine, then run again")
	}
}

func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasPrefix(name, "localhost.")
}

// hostname takes the domain from the host name or from the line of /etc/hosts that names the host.
func (r *resolver) hostname(_ document.Path, v v1alpha1.MachineValue) (string, error) {
	name := strings.ToLower(strings.TrimSpace(r.m.Target.Hostname))
	if isLocalhost(name) {
		return "", errors.New("the host name is " + name)
	}
	short, _, qualified := strings.Cut(name, ".")
	if v.Hostname == "short" {
		return short, nil
	}
	if qualified {
		return name, nil
	}
	hosts, err := r.m.FS.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for line := range strings.Lines(string(hosts)) {
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(strings.ToLower(line)); len(fields) > 1 && slices.Contains(fields[1:], short) {
			if i := slices.IndexFunc(fields[1:], func(f string) bool { return strings.HasPrefix(f, short+".") }); i >= 0 {
				return fields[1+i], nil
			}
		}
	}
	return "", errors.New("neither the host name nor /etc/hosts has a domain")
}

// interfaceAddress takes the first global address of each family that is asked for.
func (r *resolver) interfaceAddress(_ document.Path, v v1alpha1.MachineValue) (string, error) {
	all, err := r.addresses(v.Interface)
	if err != nil {
		return "", errors.New("this interface does not exist")
	}
	var found []string
	for family := range strings.SplitSeq(cmp.Or(v.Family, "ipv4"), ",") {
		i := slices.IndexFunc(all, func(ip netip.Addr) bool { return ip.Unmap().Is4() == (family == "ipv4") && ip.IsGlobalUnicast() })
		if i < 0 {
			return "", errors.New("this interface has no global address of the family " + family)
		}
		found = append(found, all[i].Unmap().String())
	}
	return strings.Join(found, ","), nil
}

func (r *resolver) file(at document.Path, v v1alpha1.MachineValue) (string, error) {
	info, err := r.m.FS.Stat(v.File)
	if err == nil && info.Size > maxValueFile {
		return "", errors.New("the file has more than 1 MiB")
	}
	var data []byte
	if err == nil {
		data, err = r.m.FS.ReadFile(v.File)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("the file does not exist")
	case err != nil:
		r.err = sdk.At(err, string(at))
		return "", err
	}
	if v.JSONKeys != nil {
		return jsonValues(data, v.JSONKeys)
	}
	return valueOf(string(data), v.Key)
}

// jsonValues returns the values of the keys, joined with slashes. The error does not quote the text.
func jsonValues(data []byte, keys []string) (string, error) {
	var root any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&root); err != nil || d.More() {
		return "", errors.New("the file is not an object in JSON")
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		value := root
		for name := range strings.SplitSeq(key, ".") {
			object, _ := value.(map[string]any)
			if value = object[name]; value == nil {
				return "", errors.New("the file does not have the key " + key)
			}
		}
		switch value := value.(type) {
		case string:
			values[i] = strings.TrimSpace(value)
		case json.Number:
			values[i] = value.String()
		default:
			return "", errors.New(key + " is not a text or a number")
		}
		if values[i] == "" {
			return "", errors.New(key + " is empty")
		}
		if form.HasControl(values[i]) {
			return "", errors.New(key + " has more than one line or control characters")
		}
	}
	return strings.Join(values, "/"), nil
}

// valueOf returns the whole text without white space around it, or with a key the value of its line KEY=VALUE. Quotes around
// the value are removed. The error does not quote the text.
func valueOf(text, key string) (string, error) {
	value, found := strings.TrimSpace(text), key == ""
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), "=")
		if key == "" || !ok || strings.TrimSpace(name) != key {
			continue
		}
		if found {
			return "", errors.New("the file has the key twice")
		}
		value, found = strings.TrimSpace(rest), true
		for _, quote := range []string{`"`, `'`} {
			if inner, ok := strings.CutPrefix(value, quote); ok && len(value) > 1 && strings.HasSuffix(inner, quote) {
				value = strings.TrimSuffix(inner, quote)
				break
			}
		}
	}
	switch {
	case !found:
		return "", errors.New("the file does not have the key")
	case value == "":
		return "", errors.New("it is empty")
	case form.HasControl(value):
		return "", errors.New("it has more than one line or control characters")
	}
	return value, nil
}
