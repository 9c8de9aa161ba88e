package conformance

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// commandsDir has the stand-ins of commands of a case.
const commandsDir = "commands"

// Case is one case, as read by LoadCases.
type Case struct {
	// Name is the directory's name.
	Name string

	dir    string
	header header
	config []byte // with the placeholder
	expect expectation
}

// expectation is expect.yaml.
type expectation struct {
	Errors  []expectedError   `json:"errors,omitempty"`
	Changes *[]string         `json:"changes,omitempty"`
	Facts   map[string]string `json:"facts,omitempty"`
	Reboot  string            `json:"reboot,omitempty"`
	Secrets []string          `json:"secrets,omitempty"`
	Modes   map[string]string `json:"modes,omitempty"`
	// Claims has the parts of the value by the id of a claim.
	Claims map[string][]string `json:"claims,omitempty"`
	File   string              `json:"file,omitempty"`
	SHA256 string              `json:"sha256,omitempty"`
}

type expectedError struct {
	Code  string `json:"code"`
	Field string `json:"field,omitempty"`
	Final bool   `json:"final,omitempty"`
}

// caseFiles are the names in the directory of a case.
func caseFiles() []string {
	return []string{"config.yaml", "root", "expect", "expect.yaml", "served", commandsDir, "README.md"}
}

// codes are the codes that a case can expect: Internal is always a finding.
func codes() []string {
	var out []string
	for _, code := range []pluginv1.Code{
		pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported, pluginv1.CodePrecondition, pluginv1.CodeRetry,
	} {
		out = append(out, code.String())
	}
	return out
}

// refused reports whether the case expects that the document is refused.
func (c *Case) refused() bool { return len(c.expect.Errors) > 0 }

// refusedWith reports whether the case expects that the document is refused with this code.
func (c *Case) refusedWith(code pluginv1.Code) bool {
	return slices.ContainsFunc(c.expect.Errors, func(e expectedError) bool { return e.Code == code.String() })
}

// LoadCases reads every case in a directory, sorted by name. The error for an invalid case names the file.
func LoadCases(dir string) ([]*Case, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the cases: %w", err)
	}
	var cases []*Case
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		c, err := loadCase(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("%s has no case: a case is a directory with a config.yaml", dir)
	}
	return cases, nil
}

func loadCase(dir string) (*Case, error) {
	c := &Case{Name: filepath.Base(dir), dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(caseFiles(), e.Name()) {
			return nil, fmt.Errorf("%s is no file of a case: use %s", filepath.Join(dir, e.Name()), strings.Join(caseFiles(), ", "))
		}
	}
	if c.config, err = os.ReadFile(filepath.Join(dir, "config.yaml")); err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	name := filepath.Join(dir, "expect.yaml")
	switch data, err := os.ReadFile(name); {
	case err == nil:
		if err := c.readExpectation(name, data); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read a case: %w", err)
	}
	if _, err = c.document(newCanary(), nil); err != nil {
		return nil, err
	}
	return c, c.checkRole()
}

// checkRole refuses what has no effect for the type of plugin that the case is for.
func (c *Case) checkRole() error {
	var none []string
	if c.header.role() == configurator {
		none = []string{"served"}
	} else {
		none = []string{"root", "expect", commandsDir}
	}
	for _, name := range none {
		if _, err := os.Lstat(filepath.Join(c.dir, name)); err == nil {
			return fmt.Errorf("%s has no effect for the kind %s", filepath.Join(c.dir, name), c.header.kind)
		}
	}
	e, of := c.expect, c.header.role()
	for field, wrong := range map[string]bool{
		"file": of == configurator && e.File != "", "sha256": of == configurator && e.SHA256 != "",
		"changes": of != configurator && e.Changes != nil, "reboot": of != configurator && e.Reboot != "",
		"modes": of != configurator && e.Modes != nil, "claims": of != configurator && e.Claims != nil,
	} {
		if wrong {
			return fmt.Errorf("%s: %s: has no effect for the kind %s", filepath.Join(c.dir, "expect.yaml"), field, c.header.kind)
		}
	}
	if c.header.kind == v1alpha1.KindReportTarget && of == source {
		return fmt.Errorf("%s: a case has a RemoteConfig; the kit sends no reports", filepath.Join(c.dir, "config.yaml"))
	}
	if _, err := os.Stat(filepath.Join(c.dir, "served", filepath.FromSlash(e.File))); e.File != "" && err != nil {
		return fmt.Errorf("%s: file: %w", filepath.Join(c.dir, "expect.yaml"), err)
	}
	return nil
}

func (c *Case) readExpectation(name string, data []byte) error {
	if err := readYAML(name, data, &c.expect); err != nil {
		return err
	}
	var problems []string
	problem := func(field, message string) { problems = append(problems, name+": "+field+": "+message) }
	for i, e := range c.expect.Errors {
		if !slices.Contains(codes(), e.Code) {
			problem(fmt.Sprintf("errors[%d].code", i), "must be one of "+strings.Join(codes(), ", "))
		}
		if e.Final && e.Code != pluginv1.CodePrecondition.String() {
			problem(fmt.Sprintf("errors[%d].final", i), "only a Precondition can be final")
		}
	}
	if !slices.Contains([]string{"", "None", "AfterRun", "BeforeNext"}, c.expect.Reboot) {
		problem("reboot", "must be None, AfterRun or BeforeNext")
	}
	for file, mode := range c.expect.Modes {
		if bits, err := strconv.ParseUint(mode, 8, 32); err != nil || bits > 0o7777 {
			problem("modes."+file, `must be an octal string such as "0600"`)
		}
	}
	if c.refused() && c.expect.Changes != nil {
		problem("changes", "a refused document has none")
	}
	if c.refused() && c.expect.Claims != nil {
		problem("claims", "a refused document has none")
	}
	if c.refused() && (c.expect.File != "" || c.expect.SHA256 != "") {
		problem("file, sha256", "a refused document has no object")
	}
	if digest := c.expect.SHA256; digest != "" && (len(digest) != 2*sha256.Size || strings.Trim(digest, "0123456789abcdef") != "") {
		problem("sha256", "must be 64 hexadecimal digits in lower case")
	}
	if !c.refused() && c.expect.Facts != nil {
		problem("facts", "only a refused document has facts")
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

// readYAML decodes a YAML mapping strictly.
func readYAML(name string, data []byte, into any) error {
	mapping, err := yamlMapping(name, data)
	if err != nil {
		return err
	}
	for _, v := range document.Unmarshal(mapping, into) {
		return fmt.Errorf("%s: %s: %s", name, v.Field, v.Message)
	}
	return nil
}

// yamlMapping returns a YAML mapping as JSON. It uses the reader of documents and reads the mapping as the spec of one;
// the lines of its errors count as in the file.
func yamlMapping(name string, data []byte) ([]byte, error) {
	const head = "apiVersion: conformance/v1\nkind: Expectation\nmetadata: {name: expectation}\nspec:\n"
	var text bytes.Buffer
	text.WriteString(head)
	for line := range bytes.Lines(data) {
		text.WriteString("  ")
		text.Write(line)
	}
	stream, err := document.Decode(name, &text)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, e := range stream.Errors {
		e.Position.Line -= strings.Count(head, "\n")
		e.Position.Column -= len("  ")
		e.Kind, e.Name, e.Field = "", "", strings.TrimPrefix(e.Field, "spec.")
		problems = append(problems, e)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if len(stream.Documents) != 1 {
		return nil, fmt.Errorf("%s: must be one mapping", name)
	}
	body, err := stream.Documents[0].JSON()
	if err != nil {
		return nil, err
	}
	root, err := parse(body)
	if err != nil {
		return nil, err
	}
	return encode(root["spec"])
}

// document returns the document as JSON, with the canary in place of the placeholder, and with the values of the counterpart
// unless they are nil. It sets the header of the case.
func (c *Case) document(canary string, values map[string]string) ([]byte, error) {
	name := filepath.Join(c.dir, "config.yaml")
	config := fill(c.config, canary)
	for key, value := range values {
		config = bytes.ReplaceAll(config, []byte("${"+key+"}"), []byte(value))
	}
	if left := regexp.MustCompile(`\$\{[A-Za-z0-9_-]+\}`).Find(config); values != nil && left != nil {
		return nil, fmt.Errorf("%s has %s, which has no value: define it (--define NAME=VALUE, or Suite.Setup)", name, left)
	}
	data, err := decodeOne(name, config)
	if err != nil {
		return nil, err
	}
	if c.header, err = headerOf(data); err != nil {
		return nil, err
	}
	at, err := fieldsWith(data, canary)
	if err != nil {
		return nil, err
	}
	if !sameFields(c.expect.Secrets, at) {
		return nil, fmt.Errorf("%s: %s is in %q, but the secrets of expect.yaml are %q",
			name, placeholder, at, c.expect.Secrets)
	}
	return data, nil
}

// decodeOne decodes a stream of one document to JSON.
func decodeOne(name string, text []byte) ([]byte, error) {
	stream, err := document.Decode(name, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	for _, e := range stream.Errors {
		return nil, fmt.Errorf("a host would refuse the document before a plugin sees it: %w", e)
	}
	if len(stream.Documents) != 1 {
		return nil, fmt.Errorf("%s has %d documents: a case has one", name, len(stream.Documents))
	}
	return stream.Documents[0].JSON()
}

// sameFields reports whether the canary is in all secret fields and nowhere else. A secret is a string, or a mapping with a
// value.
func sameFields(secrets, at []string) bool {
	named := func(field string) bool {
		return slices.Contains(secrets, field) || slices.Contains(secrets, strings.TrimSuffix(field, ".value"))
	}
	return len(secrets) == len(at) && !slices.ContainsFunc(at, func(field string) bool { return !named(field) })
}

func fill(data []byte, canary string) []byte {
	return bytes.ReplaceAll(data, []byte(placeholder), []byte(canary))
}
