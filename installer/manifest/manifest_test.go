package manifest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func example() *manifest.Manifest {
	expires := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	return &manifest.Manifest{
		Format: 1, Name: "machineadm", Version: "v0.1.0", Sequence: 7, Expires: &expires,
		Files: []manifest.File{
			{Name: "machineadm_0.1.0~rc1_amd64.deb", Kind: manifest.KindDeb, OS: "linux", Arch: "amd64", Size: 3, SHA256: digest("deb")},
			{
				Name: "machineadm-v0.1.0-linux-amd64.tar.zst", Kind: manifest.KindArchive, OS: "linux", Arch: "amd64", Size: 9, SHA256: digest("x"),
				Contents: []manifest.Entry{
					{Path: "plugins/machineadm-sysctl-plugin-procfs", Size: 5, SHA256: digest("p")},
					{Path: "bin/machineadm", Size: 4, SHA256: digest("m")},
				},
			},
		},
	}
}

func encode(t testing.TB, m *manifest.Manifest) []byte {
	t.Helper()
	text, err := m.Encode()
	require.NoError(t, err)
	return text
}

func TestEncodeAndDecode(t *testing.T) {
	t.Parallel()
	m := example()
	text := encode(t, m)
	assert.Equal(t, "machineadm-v0.1.0-linux-amd64.tar.zst", m.Files[0].Name, "sorted")
	assert.Equal(t, "bin/machineadm", m.Files[0].Contents[0].Path, "sorted")
	got, err := manifest.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, m, got)
	assert.Equal(t, text, encode(t, got))
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good := string(encode(t, example()))
	replace := func(from, to string) string {
		require.Contains(t, good, from)
		return strings.Replace(good, from, to, 1)
	}
	for name, test := range map[string]struct{ text, err string }{
		"empty":                 {"", "unexpected end of JSON input"},
		"not an object":         {"[]\n", "cannot unmarshal array"},
		"a later format":        {`{"format": 2, "new": true}`, "format: is 2, and this machineadm reads format 1 only"},
		"unknown field":         {replace(`"name"`, `"extra": 1, "name"`), `unknown field "extra"`},
		"repeated field":        {replace(`"version": "v0.1.0"`, `"version": "v9.9.9", "version": "v0.1.0"`), "manifest.json:4: differs"},
		"field in capitals":     {replace(`"version"`, `"Version"`), "manifest.json:4: differs"},
		"text behind":           {good + "{}", "after top-level value"},
		"space behind":          {good + "\n", "differs"},
		"too large":             {good + strings.Repeat(" ", manifest.MaxSize), "larger than 1048576 bytes"},
		"other name":            {replace(`"name": "machineadm"`, `"name": "../x"`), `name: "../x" is not a lower-case name`},
		"version without v":     {replace(`"v0.1.0"`, `"0.1.0"`), `version: "0.1.0" is not of the form`},
		"version of a path":     {replace(`"v0.1.0"`, `"v0.1.0/.."`), "is not of the form"},
		"version with metadata": {replace(`"v0.1.0"`, `"v0.1.0+1"`), "is not of the form"},
		"short version":         {replace(`"v0.1.0"`, `"v0.1"`), "is not of the form"},
		"no sequence":           {replace(`"sequence": 7`, `"sequence": 0`), "sequence: must be above zero"},
		"negative sequence":     {replace(`"sequence": 7`, `"sequence": -7`), "cannot unmarshal number -7"},
		"another time zone":     {replace(`05Z"`, `05+00:00"`), "manifest.json:6: differs"},
		"no files":              {`{"format":1,"name":"machineadm","version":"v0.1.0","sequence":7,"files":[]}`, "files: is empty"},
		"separator in a name":   {replace(`"machineadm-v0`, `"x/machineadm-v0`), `files[0].name: "x/machineadm-v0.1.0-linux-amd64.tar.zst" is not a plain file name`},
		"dots":                  {replace(`"machineadm-v0.1.0-linux-amd64.tar.zst"`, `".."`), `files[0].name: ".." is not`},
		"backslash":             {replace(`"machineadm-v0`, `"\\machineadm-v0`), "is not a plain file name"},
		"itself":                {replace(`"machineadm_0.1.0~rc1_amd64.deb"`, `"manifest.json"`), "a manifest does not list itself"},
		"repeated file":         {replace(`"machineadm_0.1.0~rc1_amd64.deb"`, `"machineadm-v0.1.0-linux-amd64.tar.zst"`), "files[1].name"},
		"other kind":            {replace(`"archive"`, `"script"`), `files[0].kind: "script" is none of archive,`},
		"archive without os":    {replace(`"os": "linux"`, `"os": ""`), `files[0].os: "" is not a GOOS`},
		"arch in capitals":      {replace(`"amd64"`, `"AMD64"`), "files[0].arch"},
		"negative size":         {replace(`"size": 9`, `"size": -9`), "files[0].size: -9 is not from 0"},
		"huge size":             {replace(`"size": 9`, `"size": 4294967297`), "files[0].size"},
		"huge contents":         {replace(`"size": 4`, `"size": 4294967295`), "files[0].contents: is larger than"},
		"no digest":             {replace(digest("x"), ""), `files[0].sha256: "" is not 64`},
		"digest in capitals":    {replace(digest("x"), strings.ToUpper(digest("x"))), "files[0].sha256"},
		"absolute path":         {replace(`"bin/`, `"/bin/`), "files[0].contents[0].path"},
		"dots in a path":        {replace(`"bin/`, `"bin/../`), "files[0].contents[0].path"},
		"colon in a path":       {replace(`"bin/`, `"c:/`), "files[0].contents[0].path"},
		"unsorted paths":        {replace(`"bin/`, `"plugins/x`), "contents[1].path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := manifest.Decode(strings.NewReader(test.text))
			require.ErrorContains(t, err, test.err)
			assert.Contains(t, err.Error(), manifest.FileName)
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	m := example()
	m.Version = "dev"
	_, err := m.Encode()
	require.ErrorContains(t, err, "version")
	m = example()
	for i := range 20000 {
		m.Files = append(m.Files, manifest.File{Name: fmt.Sprintf("f%d", i), Kind: manifest.KindSBOM, SHA256: digest("x")})
	}
	_, err = m.Encode()
	require.ErrorContains(t, err, "is larger than")
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(f, example()))
	f.Add([]byte(`{"format":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := manifest.Decode(bytes.NewReader(text))
		if err != nil {
			return
		}
		if again := encode(t, m); !bytes.Equal(text, again) {
			t.Errorf("accepted %q, which is written as %q", text, again)
		}
	})
}
