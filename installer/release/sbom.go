package release

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/installer/manifest"
)

// The parts of SPDX 2.3 that are written. Source: https://spdx.github.io/spdx-spec/v2.3/
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	License       string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	ID        string          `json:"SPDXID"`
	Name      string          `json:"name"`
	Version   string          `json:"versionInfo"`
	File      string          `json:"packageFileName,omitempty"`
	Location  string          `json:"downloadLocation"`
	Analyzed  bool            `json:"filesAnalyzed"`
	Concluded string          `json:"licenseConcluded"`
	Declared  string          `json:"licenseDeclared"`
	Copyright string          `json:"copyrightText"`
	Checksums []spdxChecksum  `json:"checksums,omitempty"`
	Refs      []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// unstated is SPDX's word for what a document does not say.
const unstated = "NOASSERTION"

func newPackage(id, name, version string) spdxPackage {
	return spdxPackage{
		ID: "SPDXRef-" + id, Name: name, Version: version,
		Location: unstated, Concluded: unstated, Declared: unstated, Copyright: unstated,
	}
}

// bill returns the software bill of materials of an artifact: its programs, and the Go modules that each was linked from, as
// the Go linker recorded them.
func (r *Release) bill(a artifact) ([]byte, error) {
	doc := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: a.Name,
		Namespace: homepage + "/spdx/" + r.Version + "/" + a.Name + "-" + a.SHA256,
		Creation:  spdxCreation{r.Time.UTC().Format(time.RFC3339), []string{"Organization: machineadm", "Tool: machineadm-release"}},
	}
	relate := func(from, kind, to string) {
		doc.Relationships = append(doc.Relationships, spdxRelationship{from, kind, to})
	}
	whole := newPackage("Artifact", a.Name, r.Version)
	whole.File, whole.Declared, whole.Checksums = a.Name, "Apache-2.0", []spdxChecksum{{"SHA256", a.SHA256}}
	doc.Packages = append(doc.Packages, whole)
	relate(doc.ID, "DESCRIBES", whole.ID)
	modules := map[string]spdxPackage{}
	for _, e := range a.Contents {
		from := source(a, e)
		info, err := buildinfo.ReadFile(from)
		if err != nil {
			if path.Dir(e.Path) == "share" || strings.Contains(e.Path, "share/") {
				continue // data
			}
			return nil, wrap("read the modules of "+from, err)
		}
		program := newPackage("Program-"+identifier(path.Base(e.Path)), path.Base(e.Path), r.Version)
		program.File, program.Declared, program.Checksums = e.Path, "Apache-2.0", []spdxChecksum{{"SHA256", e.SHA256}}
		doc.Packages = append(doc.Packages, program)
		relate(whole.ID, "CONTAINS", program.ID)
		for _, at := range append([][2]string{{"stdlib", strings.TrimPrefix(info.GoVersion, "go")}}, dependencies(info)...) {
			m := newPackage("Module-"+identifier(at[0]+"-"+at[1]), at[0], at[1])
			m.Refs = []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + at[0] + "@" + at[1]}}
			modules[m.ID] = m
			relate(m.ID, "DEPENDENCY_OF", program.ID)
		}
	}
	for _, m := range modules {
		doc.Packages = append(doc.Packages, m)
	}
	slices.SortStableFunc(doc.Packages[1:], func(a, b spdxPackage) int { return cmp.Compare(a.ID, b.ID) })
	text, err := json.MarshalIndent(doc, "", " ")
	return append(text, '\n'), err
}

// dependencies returns path and version of the modules within a program.
func dependencies(info *buildinfo.BuildInfo) [][2]string {
	var all [][2]string
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, [2]string{m.Path, m.Version})
	}
	return all
}

// source returns the file on disk that an entry of the manifest was made from.
func source(a artifact, e manifest.Entry) string {
	for _, f := range slices.Concat(a.all, a.programs) {
		if f.Path == e.Path {
			return f.From
		}
	}
	return ""
}

// identifier replaces what an identifier of SPDX cannot have.
func identifier(text string) string {
	return strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, text)
}
