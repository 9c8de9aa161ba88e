package wrap

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/contract/document"
)

// fault is why the program that reads an output would not read it. Its message does not quote the output.
type fault struct {
	line    int // of the output; 0 if it is not known
	message string
}

// checkWhole checks an output that is the whole data.
func checkWhole(f Format, out []byte) *fault {
	if f.Type == plain { // who reads it, is not known
		return nil
	}
	if bad := checkText(out); bad != nil {
		return bad
	}
	switch f.Type {
	case cloudConfig:
		return checkUserData(out, "#!", "#cloud-config-archive", "#cloud-config-jsonp", "#cloud-boothook", "#include", "#part-handler")
	case cloudbaseInit:
		return checkUserData(out, "#!", "#ps1", "rem cmd", "<powershell>", "<script>")
	case ignition:
		return checkIgnition(f.Version, out)
	case unattend:
		return checkXML(out)
	case talos:
		return checkYAML(out)
	case combustion:
		if !bytes.HasPrefix(out, []byte("#!")) || !regexp.MustCompile(`(?m)^# combustion:`).Match(out) { // combustion(8)
			return &fault{1, "is no script with a line that begins with # combustion:"}
		}
		return checkScript(out)
	}
	return nil
}

// checkPart checks an output that is one part of the data, whose first line says what it is.
func checkPart(out []byte) *fault {
	bad := checkText(out)
	switch {
	case bad != nil:
		return bad
	case bytes.HasPrefix(out, []byte(cloudConfigMark)):
		return checkYAML(out)
	case bytes.HasPrefix(out, []byte("#!")):
		return checkScript(out)
	}
	return nil
}

func checkText(out []byte) *fault {
	valid := bytes.ToValidUTF8(out, nil)
	if len(valid) == len(out) && !bytes.ContainsRune(out, 0) {
		return nil
	}
	for i, line := range bytes.Split(out, []byte("\n")) {
		if !utf8.Valid(line) || bytes.ContainsRune(line, 0) {
			return &fault{i + 1, "is not text in UTF-8"}
		}
	}
	return nil
}

// checkScript refuses a script that the kernel does not start: the name of its interpreter would end in a carriage return.
func checkScript(out []byte) *fault {
	if first, _, _ := bytes.Cut(out, []byte("\n")); bytes.HasSuffix(first, []byte("\r")) {
		return &fault{1, "ends in a carriage return (CRLF), with which no Linux starts the script"}
	}
	return nil
}

// checkUserData checks what cloud-init or cloudbase-init reads: cloud-config, a MIME message with some, or what begins with a mark.
func checkUserData(out []byte, marks ...string) *fault {
	first, _, _ := strings.Cut(string(out[:min(len(out), 256)]), "\n")
	begins := func(mark string) bool { return strings.HasPrefix(strings.ToLower(first), strings.ToLower(mark)) }
	switch {
	case strings.TrimSpace(first) == cloudConfigMark:
		return checkYAML(out)
	case begins("Content-Type:"), begins("MIME-Version:"):
		return checkMIME(out)
	case !slices.ContainsFunc(marks, begins):
		return &fault{1, "must begin with one of " + strings.Join(append([]string{cloudConfigMark, "Content-Type: multipart/mixed"}, marks...), ", ")}
	case begins("#!") && !slices.Contains(marks, "rem cmd"):
		return checkScript(out)
	}
	return nil
}

func checkMIME(out []byte) *fault {
	message, err := mail.ReadMessage(bytes.NewReader(out))
	if err != nil {
		return &fault{1, "is no MIME message"}
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || parameters["boundary"] == "" {
		return &fault{1, "is no MIME message with parts: Content-Type must be multipart/mixed, with a boundary"}
	}
	parts := multipart.NewReader(message.Body, parameters["boundary"])
	for n := 1; ; n++ {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) && n > 1 {
			return nil
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(p)
		}
		if err != nil {
			return &fault{0, fmt.Sprintf("has no part %d that ends: look for its boundary", n)}
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			return &fault{0, fmt.Sprintf("has no readable Content-Type in its part %d", n)}
		}
		encoding := strings.ToLower(p.Header.Get("Content-Transfer-Encoding"))
		if kind != "text/cloud-config" || encoding == "base64" || encoding == "quoted-printable" {
			continue
		}
		if bad := checkYAML(content); bad != nil {
			return &fault{0, fmt.Sprintf("has a part %d that %s", n, bad.message)}
		}
	}
}

// checkYAML accepts documents whose values are mappings without duplicate keys. cloud-init takes the last of two without a word.
func checkYAML(out []byte) *fault {
	if line, err := document.CheckMappings(out); err != nil {
		return &fault{line, err.Error()}
	}
	return nil
}

func checkIgnition(version string, out []byte) *fault {
	var config struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if err := json.Unmarshal(out, &config); err != nil {
		bad := &fault{message: "is no Ignition configuration in JSON"}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			bad.line = 1 + bytes.Count(out[:min(int(syntax.Offset), len(out))], []byte("\n"))
		}
		return bad
	}
	given, ok := strings.CutSuffix(config.Ignition.Version, ".0")
	switch {
	case !ok || !slices.Contains(ignitionVersions(), given):
		return &fault{0, "must have ignition.version of 3.0.0 to 3.5.0"}
	case version != "" && version != given:
		return &fault{0, "must have the ignition.version of spec.format.version, " + version + ".0"}
	}
	return nil
}

func checkXML(out []byte) *fault {
	decoder := xml.NewDecoder(bytes.NewReader(out))
	root := ""
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && root == "unattend" {
			return nil
		}
		if err != nil {
			line, _ := decoder.InputPos()
			return &fault{line, "is no answer file in XML, with the element unattend"}
		}
		if start, ok := token.(xml.StartElement); ok && root == "" {
			root = start.Name.Local
		}
	}
}
