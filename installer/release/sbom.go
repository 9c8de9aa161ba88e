package release

import (
	"debug/buildinfo"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// bill returns the software bill of materials of an artifact: its programs, and the Go modules that each was linked from, as
// the Go linker recorded them. Source: https://spdx.github.io/spdx-spec/v2.3/
func (r *Release) bill(a artifact) ([]byte, error) {
	const document, whole = "SPDXRef-DOCUMENT", "SPDXRef-Artifact"
	relations := []object{relation(document, "DESCRIBES", whole)}
	packages := map[string]object{whole: described(whole, a.Name, r.Version, object{
		"packageFileName": a.Name, "licenseDeclared": "Apache-2.0", "checksums": checksum(a.SHA256),
	})}
	for i, e := range a.Contents { // of these files
		if strings.HasPrefix(e.Path, "share/") {
			continue // data
		}
		info, err := buildinfo.ReadFile(a.files[i].From)
		if err != nil {
			return nil, wrap("read the modules of "+a.files[i].From, err)
		}
		program := identifier("Program", path.Base(e.Path))
		packages[program] = described(program, path.Base(e.Path), r.Version, object{
			"packageFileName": e.Path, "licenseDeclared": "Apache-2.0", "checksums": checksum(e.SHA256),
		})
		relations = append(relations, relation(whole, "CONTAINS", program))
		for _, m := range modules(info) {
			id := identifier("Module", m[0]+"-"+m[1])
			packages[id] = described(id, m[0], m[1], object{"externalRefs": []object{{
				"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:golang/" + m[0] + "@" + m[1],
			}}})
			relations = append(relations, relation(id, "DEPENDENCY_OF", program))
		}
	}
	var all []object
	for _, id := range slices.Sorted(maps.Keys(packages)) {
		all = append(all, packages[id])
	}
	text, err := json.MarshalIndent(object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": document, "name": a.Name,
		"documentNamespace": homepage + "/spdx/" + r.Version + "/" + a.Name + "-" + a.SHA256,
		"creationInfo": object{
			"created": r.Time.UTC().Format(time.RFC3339), "creators": []string{"Organization: machineadm", "Tool: machineadm-release"},
		},
		"packages": all, "relationships": relations,
	}, "", " ")
	return append(text, '\n'), err
}

// described returns a package of SPDX; more replaces what is not stated.
func described(id, name, version string, more object) object {
	const unstated = "NOASSERTION"
	p := object{
		"SPDXID": id, "name": name, "versionInfo": version, "filesAnalyzed": false, "downloadLocation": unstated,
		"licenseConcluded": unstated, "licenseDeclared": unstated, "copyrightText": unstated,
	}
	maps.Copy(p, more)
	return p
}

func relation(from, kind, to string) object {
	return object{"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to}
}

func checksum(digest string) []object {
	return []object{{"algorithm": "SHA256", "checksumValue": digest}}
}

// modules returns path and version of the standard library and the modules within a program.
func modules(info *buildinfo.BuildInfo) [][2]string {
	all := [][2]string{{"stdlib", strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, [2]string{m.Path, m.Version})
	}
	return all
}

// identifier replaces what an identifier of SPDX cannot have.
func identifier(kind, name string) string {
	return "SPDXRef-" + kind + "-" + strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') || (r >= '0' && r <= '9') || r == '.' {
			return r
		}
		return '-'
	}, name)
}
