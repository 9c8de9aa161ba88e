package keytab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
)

// listing is the output of MIT's `klist -K -e -t -k`, without the times.
func listing(entries []Entry) (lines []string) {
	for _, e := range entries {
		name := map[int32]string{17: "aes128-cts-hmac-sha1-96", 18: "aes256-cts-hmac-sha1-96", 23: "DEPRECATED:arcfour-hmac"}[e.Key.Type]
		lines = append(lines, fmt.Sprintf("%d %s (%s)  (0x%x)", e.Version, e.Principal, name, e.Key.Value))
	}
	return lines
}

// TestMIT reads files of MIT Kerberos as klist does, and writes the same bytes. See testdata/README.md.
func TestMIT(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ktutil", "adcli"} {
		data, err := os.ReadFile("testdata/" + name + ".keytab")
		require.NoError(t, err)
		want, err := os.ReadFile("testdata/" + name + ".klist")
		require.NoError(t, err)
		entries, err := Parse(data)
		require.NoError(t, err)
		var lines []string
		for _, m := range regexp.MustCompile(`(?m)^ *(\d+) \S+ \S+ (.*\))$`).FindAllStringSubmatch(string(want), -1) {
			lines = append(lines, m[1]+" "+m[2])
		}
		require.NotEmpty(t, lines)
		require.Equal(t, lines, listing(entries))
		require.Equal(t, data, Marshal(entries))
	}
}

// TestNew writes an entry as ktutil does.
func TestNew(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/ktutil.keytab")
	require.NoError(t, err)
	entries, err := Parse(data)
	require.NoError(t, err)
	var again []Entry
	for _, e := range entries {
		again = append(again, New(e.Principal, e.Version, time.Date(2026, 11, 23, 4, 51, 14, 0, time.UTC), e.Key))
	}
	require.Equal(t, entries, again)
}

// record is an entry with a size; an empty text ends it.
func record(body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func body(version8 byte, more ...byte) []byte {
	return slices.Concat([]byte{0, 1, 0, 1, 'R', 0, 1, 'a', 0, 0, 0, 1, 0, 0, 0, 9, version8, 0, 18, 0, 2, 7, 8}, more)
}

func TestParse(t *testing.T) {
	t.Parallel()
	hole := append([]byte{0xff, 0xff, 0xff, 0xfb}, "holes"...)
	file := func(parts ...[]byte) []byte { return append([]byte{5, 2}, slices.Concat(parts...)...) }
	for name, tt := range map[string]struct {
		data []byte
		want []string
		err  string
	}{
		"empty":      {},
		"no entries": {data: file()},
		"only holes": {data: file(hole, hole)},
		"holes between entries": {
			data: file(hole, record(body(3)...), hole, record(body(4)...), hole), want: []string{"3 a@R", "4 a@R"},
		},
		"a size of 0":                   {data: file(record(), record(body(3)...)), want: []string{"3 a@R"}},
		"a version of 32 bits":          {data: file(record(body(44, 0, 0, 1, 44)...)), want: []string{"300 a@R"}},
		"a version of 32 bits, not set": {data: file(record(body(44, 0, 0, 0, 0)...)), want: []string{"44 a@R"}},
		"3 bytes more":                  {data: file(record(body(44, 9, 9, 9)...)), want: []string{"44 a@R"}},
		"flags of Heimdal":              {data: file(record(body(44, 0, 0, 0, 45, 0, 0, 0, 1)...)), want: []string{"45 a@R"}},
		"another file":                  {data: []byte("# no keytab"), err: "version 2"},
		"one byte":                      {data: []byte{5}, err: "version 2"},
		"version 1":                     {data: append([]byte{5, 1}, record(body(3)...)...), err: "version 2"},
		"half a size":                   {data: file([]byte{0, 0, 0}), err: "ends within an entry"},
		"an entry cut":                  {data: file(record(body(3)...)[:20]), err: "ends within an entry"},
		"a hole cut":                    {data: file(hole[:6]), err: "ends within an entry"},
		"the largest hole":              {data: file([]byte{0x80, 0, 0, 0}), err: "ends within an entry"},
		"the largest entry":             {data: file([]byte{0x7f, 0xff, 0xff, 0xff}), err: "ends within an entry"},
		"a key cut":                     {data: file(record(body(3)[:22]...)), err: "entry 1: it is too short"},
		"no key":                        {data: file(record(body(3)[:19]...)), err: "entry 1: it is too short"},
		"no name":                       {data: file(record(body(3)...), record(0, 0, 0, 0)), err: "entry 2: it has no name"},
		"more names than bytes":         {data: file(record(0xff, 0xff, 0, 1, 'R')), err: "entry 1: it has no name"},
		"a name longer than the entry":  {data: file(record(0, 1, 0xff, 0xff)), err: "entry 1: it is too short"},
		"as many names as bytes, no text": {
			data: file(record(append([]byte{1, 0}, make([]byte, 256)...)...)), err: "entry 1: it is too short",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries, err := Parse(tt.data)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, fmt.Sprint(e.Version, " ", e.Principal))
				require.Equal(t, kerberos.Key{Type: 18, Value: []byte{7, 8}}, e.Key)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

// TestKept: what other programs wrote into an entry stays as it is: a slash within a part of a name, and fields of later formats.
func TestKept(t *testing.T) {
	t.Parallel()
	slash := []byte("\x00\x01\x00\x03R@S\x00\x03a/b\x00\x00\x00\x05\x00\x00\x00\x09\x02" +
		"\x00\x12\x00\x01\x07\x00\x00\x00\x02\x00\x00\x00\x01later")
	data := append([]byte{5, 2}, slices.Concat(record(slash...), record(body(3)...))...)
	entries, err := Parse(data)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, data, Marshal(entries))
}

// TestHugeCount: what an entry counts costs no memory before it is there.
func TestHugeCount(t *testing.T) {
	data := append([]byte{5, 2}, record(0xff, 0xff)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse(data)
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<16))
}

func entry(principal string, version uint32, fill byte) Entry {
	return New(principal, version, time.Unix(9, 0), kerberos.Key{Type: 18, Value: bytes.Repeat([]byte{fill}, 32)})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	entries := []Entry{
		entry("NODE$@R", 2, 2), entry("NODE$@R", 1, 1), entry("host/node@R", 9, 9), entry("NODE$@R", 2, 3), entry("node$@R", 7, 7),
		entry("old@R", 0, 5),
	}
	for principal, want := range map[string]string{
		"NODE$@R": "2 02 03", "host/node@R": "9 09", "node$@R": "7 07", "old@R": "0 05", "none@R": "0", "NODE$@S": "0",
	} {
		keys, version := Keys(entries, principal)
		got := fmt.Sprint(version)
		for _, k := range keys {
			got += " " + hex.EncodeToString(k.Value[:1])
		}
		require.Equal(t, want, got, principal)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	entries := []Entry{
		entry("host/node@R", 2, 2), entry("other@R", 2, 8), entry("NODE$@R", 2, 2), entry("NODE$@R", 1, 1), entry("host/node@R", 1, 1),
		entry("host/node@R", 1, 9), entry("OTHER$@R", 2, 7),
	}
	for principal, want := range map[string]string{
		"NODE$@R":  "host/node@R2 NODE$@R2 NODE$@R1 host/node@R1 | other@R2 host/node@R1 OTHER$@R2",
		"OTHER$@R": "OTHER$@R2 | host/node@R2 other@R2 NODE$@R2 NODE$@R1 host/node@R1 host/node@R1",
		"none@R":   " | host/node@R2 other@R2 NODE$@R2 NODE$@R1 host/node@R1 host/node@R1 OTHER$@R2",
	} {
		own, others := Split(entries, principal)
		var names [2][]string
		for i, part := range [][]Entry{own, others} {
			for _, e := range part {
				names[i] = append(names[i], fmt.Sprint(e.Principal, e.Version))
			}
		}
		require.Equal(t, want, strings.Join(names[0], " ")+" | "+strings.Join(names[1], " "))
	}
}

// FuzzParse: a file that is read is written with the same entries.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"ktutil", "adcli"} {
		data, err := os.ReadFile("testdata/" + name + ".keytab")
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add(slices.Concat([]byte{5, 2, 0xff, 0xff, 0xff, 0xff, 0}, record(body(3)...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := Parse(data)
		if err != nil {
			return
		}
		again, err := Parse(Marshal(entries))
		require.NoError(t, err)
		require.Equal(t, entries, again)
		for _, e := range entries {
			own, others := Split(entries, e.Principal)
			require.Len(t, entries, len(own)+len(others))
		}
	})
}
