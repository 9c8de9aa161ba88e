package settings_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
)

func document(t testing.TB, spec string) v1alpha1.Timesync {
	t.Helper()
	var doc v1alpha1.Timesync
	require.NoError(t, json.Unmarshal([]byte(spec), &doc.Spec))
	return doc
}

func TestResolve(t *testing.T) {
	t.Parallel()
	s, violations := settings.Resolve(document(t, `{"profile":"gcp","servers":[{"address":"ntp1.example.com","minPoll":4,
		"key":{"id":2,"type":"SHA1","value":{"value":"12345678"}}},{"address":"ntp2.example.com",
		"key":{"id":1,"type":"AES128","value":{"value":"HEX:00112233445566778899aabbccddeeff"}}}],
		"pools":[{"address":"pool.example.com","maxSources":2}],"makeStep":{"threshold":"500ms","limit":-1},"waitForSync":{}}`))
	require.Empty(t, violations)
	var addresses []string
	for _, source := range s.Sources {
		addresses = append(addresses, source.Address)
	}
	assert.Equal(t, []string{"metadata.google.internal", "ntp1.example.com", "ntp2.example.com", "pool.example.com"}, addresses)
	assert.True(t, s.Smeared)
	assert.Len(t, s.Warnings, 3, "the other servers must spread leap seconds as well")
	assert.Equal(t, settings.Wait{Timeout: 3 * time.Minute, MaxOffset: time.Second}, *s.Wait)
	assert.Equal(t, settings.MakeStep{Threshold: 500 * time.Millisecond, Limit: -1}, *s.MakeStep)
	assert.True(t, s.DisableOthers)
	keys := s.Keys()
	require.Len(t, keys, 2)
	assert.Equal(t, 1, keys[0].ID)
	value, err := keys[0].Bytes()
	require.NoError(t, err)
	assert.Equal(t, byte(0xff), value[15])
}

// TestSmeared: the servers that spread leap seconds are known by their names and by all of their addresses.
func TestSmeared(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"169.254.169.123": true, "fd00:ec2:0::123": true, "time.aws.com": true, "0.time.aws.com": true,
		"metadata.google.internal": true, "169.254.169.254": true, "Time.Google.com": true, "time4.google.com": true, "216.239.35.0": true,
		"216.239.35.12": true, "::ffff:216.239.35.4": true, "2001:4860:4806:8::": true, "2001:4860:4806:0c:0::": true,
		"time3.facebook.com": true, "129.134.25.123": true,
		"216.239.35.1": false, "time.cloudflare.com": false, "192.0.2.1": false, "ntp1.example.com": false,
	} {
		s, violations := settings.Resolve(document(t, `{"servers":[{"address":"`+address+`"}]}`))
		require.Empty(t, violations)
		require.Equal(t, want, s.Smeared, address)
	}
}

// TestRefused: each fault is found at its field, and no message quotes a key.
func TestRefused(t *testing.T) {
	t.Parallel()
	const k = `"type":"SHA1","value":{"value":"c4n4ry-8"}`
	for name, c := range map[string]struct{ spec, want string }{
		"port":                {`{"servers":[{"address":"a.example.com:123"}]}`, "spec.servers[0].address: must be an IP address or a DNS name"},
		"multicast":           {`{"servers":[{"address":"224.0.1.1"}]}`, "spec.servers[0].address: is not the address of a server"},
		"broadcast":           {`{"servers":[{"address":"255.255.255.255"}]}`, "spec.servers[0].address: is not the address of a server"},
		"one link":            {`{"servers":[{"address":"fe80::1"}]}`, "spec.servers[0].address: is an address of one link"},
		"another driver":      {`{"servers":[{"address":"a"}],"refClocks":[{"driver":"phc","device":"/dev/pps0"}]}`, "spec.refClocks[0].device: is a device of another driver"},
		"pulses alone":        {`{"refClocks":[{"driver":"pps","device":"/dev/pps0"}]}`, "spec.refClocks[0]: says when a second begins and not which one"},
		"unspecified":         {`{"fallback":["::"]}`, "spec.fallback[0]: is not the address of a server"},
		"zone":                {`{"servers":[{"address":"fe80::1%eth0"}]}`, "spec.servers[0].address: must be an IP address or a DNS name"},
		"blanks":              {`{"servers":[{"address":"a b"}]}`, "spec.servers[0].address: must be an IP address or a DNS name"},
		"line feed":           {`{"fallback":["a\nserver b"]}`, "spec.fallback[0]: must be an IP address or a DNS name"},
		"empty":               {`{"servers":[{"address":""}]}`, "spec.servers[0].address: must be an IP address or a DNS name"},
		"bad IPv4":            {`{"servers":[{"address":"192.0.2.300"}]}`, "spec.servers[0].address: must be an IP address or a DNS name"},
		"same address":        {`{"servers":[{"address":"2001:db8::1"},{"address":"2001:DB8:0::1"}]}`, "spec.servers[1].address: is the same source as spec.servers[0].address"},
		"profile's address":   {`{"profile":"aws","servers":[{"address":"169.254.169.123"}]}`, "spec.servers[0].address: is the same source as spec.profile"},
		"same id":             {`{"servers":[{"address":"a","key":{"id":1,` + k + `}},{"address":"b","key":{"id":1,"type":"MD5","value":{"value":"c4n4ry-8"}}}]}`, "spec.servers[1].key.id: is the id of another key at spec.servers[0].key"},
		"empty key":           {`{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"HEX:"}}}]}`, "spec.servers[0].key.value: must have from 1 to 1000 bytes"},
		"long key":            {`{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"` + strings.Repeat("c4n4ry-8", 126) + `"}}}]}`, "spec.servers[0].key.value: must have from 1 to 1000 bytes"},
		"step without limit":  {`{"makeStep":{"threshold":"1s"}}`, "spec.makeStep.limit: is required"},
		"length of AES":       {`{"servers":[{"address":"a","key":{"id":1,"type":"AES256","value":{"value":"c4n4ry-8"}}}]}`, "spec.servers[0].key.value: a key of type AES256 has 32 bytes"},
		"odd digits":          {`{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"HEX:c4c4c"}}}]}`, "spec.servers[0].key.value: must have an even number of hexadecimal digits after the prefix HEX"},
		"blank in key":        {`{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"c4n4ry 8"}}}]}`, "spec.servers[0].key.value: must have printable ASCII characters"},
		"ASCII:":              {`{"servers":[{"address":"a","key":{"id":1,"type":"SHA1","value":{"value":"ASCII:c4n4ry"}}}]}`, "spec.servers[0].key.value: must be written without the prefix ASCII"},
		"device with a blank": {`{"refClocks":[{"driver":"phc","device":"/dev/ptp0 trust"}]}`, "spec.refClocks[0].device: must be an absolute path"},
		"device twice":        {`{"profile":"azure","refClocks":[{"driver":"phc","device":"/dev/ptp_hyperv"}]}`, "spec.refClocks[0].device: is the same clock as spec.profile"},
		"addresses":           {`{"servers":[{"address":"216.239.35.0"},{"address":"2606:4700:f1:0::1"}]}`, "spec.servers[1]: inserts leap seconds, and spec.servers[0] spreads them"},
		"leap seconds":        {`{"servers":[{"address":"time.google.com"}],"pools":[{"address":"2.pool.ntp.org"}]}`, "spec.pools[0]: inserts leap seconds, and spec.servers[0] spreads them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, violations := settings.Resolve(document(t, c.spec))
			require.NotEmpty(t, violations)
			assert.Contains(t, violations[0].Field+": "+violations[0].Message, c.want)
			assert.NotContains(t, fmt.Sprint(violations), "c4n4ry")
		})
	}
}

// TestWarned: what works as written and is seldom meant has a warning, and the document can accept it.
func TestWarned(t *testing.T) {
	t.Parallel()
	const smeared = `"servers":[{"address":"time.google.com"},{"address":"ntp1.example.com"}]`
	for spec, want := range map[string]string{
		`{` + smeared + `}`: "spec.servers[1]",
		`{` + smeared + `,"keepDistributionSources":true}`:                                                                       "spec.keepDistributionSources spec.servers[1]",
		`{` + smeared + `,"keepDistributionSources":true,"mixedLeapSeconds":true}`:                                               "",
		`{"mixedLeapSeconds":true,"profile":"gcp","pools":[{"address":"pool.ntp.org"}]}`:                                         "",
		`{"servers":[{"address":"a","key":{"id":1,"type":"MD5","value":{"value":"c4n4ry"}}}]}`:                                   "spec.servers[0].key.value",
		`{"servers":[{"address":"a","key":{"id":1,"type":"SHA512","value":{"value":"` + strings.Repeat("c4n4ry-8", 8) + `"}}}]}`: "",
		`{"pools":[{"address":"pool.example.com"}],"servers":[]}`:                                                                "",
		`{"servers":[{"address":"localhost"}]}`:                                                                                  "spec.servers[0].address",
		`{"servers":[{"address":"127.0.0.1"}]}`:                                                                                  "spec.servers[0].address",
		`{"refClocks":[{"driver":"pps","device":"/dev/pps0"},{"driver":"phc","device":"/dev/ptp0"}]}`:                            "",
		`{"refClocks":[{"driver":"pps","device":"/dev/pps0"}],"servers":[{"address":"a"}]}`:                                      "",
		`{"refClocks":[{"driver":"pps","device":"/dev/pps0"}],"keepDistributionSources":true}`:                                   "",
		`{"makeStep":{"threshold":"1s","limit":0}}`:                                                                              "",
	} {
		s, violations := settings.Resolve(document(t, spec))
		require.Empty(t, violations, spec)
		var fields []string
		for _, w := range s.Warnings {
			fields = append(fields, w.Field)
		}
		assert.Equal(t, want, strings.Join(fields, " "), spec)
		assert.NotContains(t, fmt.Sprint(s.Warnings), "c4n4ry")
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("ntp1.example.com", "HEX:0011223344556677", "500ms", "/dev/ptp0")
	f.Fuzz(func(t *testing.T, address, key, duration, device string) {
		doc := v1alpha1.Timesync{Spec: v1alpha1.TimesyncSpec{
			Servers: []v1alpha1.TimeServer{{TimeSource: v1alpha1.TimeSource{
				Address: address, Key: &v1alpha1.TimeKey{ID: 1, Type: "SHA1", Value: v1alpha1.NewSecret([]byte(key))},
			}}},
			RefClocks: []v1alpha1.RefClock{{Driver: "phc", Device: device, Offset: duration}},
		}}
		s, violations := settings.Resolve(doc)
		if len(violations) > 0 {
			return
		}
		// What is valid cannot end a line or a word of a configuration file.
		for _, text := range []string{s.Sources[0].Address, string(s.Keys()[0].Value.Reveal()), s.RefClocks[0].Device} {
			require.NotEmpty(t, text)
			for _, c := range text {
				require.True(t, c > ' ' && c <= '~', "%q", text)
			}
		}
	})
}

// TestOffline: a directive with which chronyd never asks its source gets a warning.
func TestOffline(t *testing.T) {
	t.Parallel()
	s, violations := settings.Resolve(document(t, `{}`), settings.Line{Text: "server 192.0.2.1 iburst offline", Field: "spec.providerConfig.directives[0]"})
	require.Empty(t, violations)
	require.Len(t, s.Warnings, 1)
	assert.Equal(t, "spec.providerConfig.directives[0]", s.Warnings[0].Field)
	assert.Contains(t, s.Warnings[0].Message, "chronyc online")
}

// TestWaitIsBounded: a wait that the document's own limit ends first is said.
func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	for limit, warned := range map[string]bool{"": true, "10m": true, "30m": false} {
		doc := v1alpha1.Timesync{Spec: v1alpha1.TimesyncSpec{WaitForSync: &v1alpha1.WaitForSync{Timeout: "20m"}}}
		doc.Metadata.Timeout = limit
		s, violations := settings.Resolve(doc)
		require.Empty(t, violations)
		require.Equal(t, warned, len(s.Warnings) == 1, limit)
	}
}
