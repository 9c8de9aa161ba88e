package netjoin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const canary = "c4n4ry-pässword-7f3a"

// fake is a Windows machine in a network with one domain, ad.example.com. Its process can be killed.
type fake struct {
	State
	// Fails has the errors of the next calls, by the first word of what log has for them.
	Fails map[string][]error
	log   []string

	password string
	next     string // the domain that the data of an offline join bring
	left     int    // changes until the process is killed, 0: never
}

var errKilled = errors.New("killed")

// change makes a change, and kills the process before or after it.
func (f *fake) change(apply func(), format string, arguments ...any) error {
	line := fmt.Sprintf(format, arguments...)
	var word string
	_, _ = fmt.Sscan(line, &word)
	if f.left--; f.left == 0 {
		return errKilled
	}
	f.log = append(f.log, line)
	if fails := f.Fails[word]; len(fails) > 0 {
		f.Fails[word] = fails[1:]
		if fails[0] != nil {
			return fails[0]
		}
	}
	apply()
	if f.left--; f.left == 0 {
		return errKilled
	}
	return nil
}

func (f *fake) Observe() (State, error) {
	if fails := f.Fails["observe"]; len(fails) > 0 {
		return State{}, fails[0]
	}
	return f.State, nil
}

func (f *fake) Mark(m Mark) error { return f.change(func() { f.State.Mark = m }, "mark %s", m) }

func (f *fake) Rename(host string) error {
	return f.change(func() { f.NextName = strings.ToUpper(host) }, "rename %s", host)
}

func (f *fake) Join(r Request) error {
	if r.Blob != nil {
		return f.change(func() { f.next = "ad.example.com" }, "provision %x", r.Blob)
	}
	f.password = string(r.Password)
	return f.change(func() { f.NetBIOS, f.DNS = "AD", "ad.example.com" },
		"join domain=%s unit=%s account=%s flags=%#x", r.Domain, r.Unit, r.Account, uint32(r.Flags))
}

func (f *fake) Leave(account string, password []byte) error {
	f.password = string(password)
	return f.change(func() { f.NetBIOS, f.DNS = "", "" }, "leave account=%s", account)
}

// reboot ends the boot.
func (f *fake) reboot() {
	f.Name, f.State.Mark = f.NextName, ""
	if f.next != "" {
		f.NetBIOS, f.DNS, f.next = "AD", f.next, ""
		f.Name, f.NextName = "NODE-1", "NODE-1" // from the data too
	}
}

func machine(t *testing.T) sdk.Machine {
	t.Helper()
	return machinetest.New(t).Machine
}

// workgroup is a machine that is no member, and member one that is.
func workgroup() *fake {
	return &fake{State: State{Name: "NODE-1", NextName: "NODE-1"}, Fails: map[string][]error{}}
}

func member() *fake {
	f := workgroup()
	f.NetBIOS, f.DNS = "AD", "ad.example.com"
	return f
}

func withoutCredentials() settings.Settings {
	return settings.Settings{Domain: "ad.example.com", Computer: "NODE-1"}
}

func wanted() settings.Settings {
	s := withoutCredentials()
	s.Credentials = &v1alpha1.DomainCredentials{Username: "joiner", Password: v1alpha1.NewSecret([]byte(canary))}
	return s
}

func offline(blob string) settings.Settings {
	s, secret := withoutCredentials(), v1alpha1.NewSecret([]byte(blob))
	s.OfflineJoinBlob = &secret
	return s
}

// apply makes the changes of a plan until one fails.
func apply(t *testing.T, f *fake, s settings.Settings) error {
	t.Helper()
	p, err := Plan(t.Context(), machine(t), s, f)
	if err != nil {
		return err
	}
	for _, c := range p.Changes {
		require.Equal(t, sdk.RebootBeforeNext, c.Reboot)
		if err := c.Do(t.Context(), nil); err != nil {
			return err
		}
	}
	return nil
}

// planned returns the IDs of the changes.
func planned(t *testing.T, f *fake, s settings.Settings) []string {
	t.Helper()
	p, err := Plan(t.Context(), machine(t), s, f)
	require.NoError(t, err)
	var ids []string
	for _, c := range p.Changes {
		ids = append(ids, c.ID)
	}
	return ids
}
