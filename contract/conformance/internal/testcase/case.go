// Package testcase reads the cases of the kit: their documents, their expectations, and the places of a machine that they name.
package testcase

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

// CommandsDir has the stand-ins of commands of a case.
const CommandsDir = "commands"

// Case is one case, as read by LoadAll.
type Case struct {
	// Name is the directory's name.
	Name string

	Dir    string
	Header Header
	Config []byte // with the placeholder
	Expect Expectation
}

// Expectation is expect.yaml.
type Expectation struct {
	Errors  []ExpectedError   `json:"errors,omitempty"`
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

// ExpectedError is the error with which a plugin answers a case.
type ExpectedError struct {
	Code  string `json:"code"`
	Field string `json:"field,omitempty"`
	Final bool   `json:"final,omitempty"`
}

// CaseFiles are the names in the directory of a case.
func CaseFiles() []string {
	return []string{"config.yaml", "root", "expect", "expect.yaml", "served", CommandsDir, "README.md"}
}

// Codes are the codes that a case can expect: Internal is always a finding.
func Codes() []string {
	var out []string
	for _, code := range []pluginv1.Code{
		pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported, pluginv1.CodePrecondition, pluginv1.CodeRetry,
	} {
		out = append(out, code.String())
	}
	return out
}

// Refused reports whether the case expects that the document is refused.
func (c *Case) Refused() bool { return len(c.Expect.Errors) > 0 }

// RefusedWith reports whether the case expects that the document is refused with this code.
func (c *Case) RefusedWith(code pluginv1.Code) bool {
	return slices.ContainsFunc(c.Expect.Errors, func(e ExpectedError) bool { return e.Code == code.String() })
}

// LoadAll reads every case in a directory, sorted by name. The error for an invalid case names the file.
func LoadAll(dir string) ([]*Case, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the cases: %w", err)
	}
	var cases []*Case
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		c, err := LoadCase(filepath.Join(dir, e.Name()))
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

// LoadCase reads the case in a directory. The error for an invalid case names the file.
func LoadCase(dir string) (*Case, error) {
	c := &Case{Name: filepath.Base(dir), Dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	for _, e := range entries {
		if !slices.Contains(CaseFiles(), e.Name()) {
			return nil, fmt.Errorf("%s is no file of a case: use %s", filepath.Join(dir, e.Name()), strings.Join(CaseFiles(), ", "))
		}
	}
	if c.Config, err = os.ReadFile(filepath.Join(dir, "config.yaml")); err != nil {
		return nil, fmt.Errorf("read a case: %w", err)
	}
	name := filepath.Join(dir, "expect.yaml")
	switch data, err := os.ReadFile(name); {
	case err == nil:
		if err := c.ReadExpectation(name, data); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read a case: %w", err)
	}
	if _, err = c.Document(NewCanary(), nil); err != nil {
		return nil, err
	}
	return c, c.checkRole()
}

// checkRole refuses what has no effect for the type of plugin that the case is for.
func (c *Case) checkRole() error {
	var none []string
	if c.Header.Role() == Configurator {
		none = []string{"served"}
	} else {
		none = []string{"root", "expect", CommandsDir}
	}
	for _, name := range none {
		if _, err := os.Lstat(filepath.Join(c.Dir, name)); err == nil {
			return fmt.Errorf("%s has no effect for the kind %s", filepath.Join(c.Dir, name), c.Header.Kind)
		}
	}
	e, of := c.Expect, c.Header.Role()
	for field, wrong := range map[string]bool{
		"file": of == Configurator && e.File != "", "sha256": of == Configurator && e.SHA256 != "",
		"changes": of != Configurator && e.Changes != nil, "reboot": of != Configurator && e.Reboot != "",
		"modes": of != Configurator && e.Modes != nil, "claims": of != Configurator && e.Claims != nil,
	} {
		if wrong {
			return fmt.Errorf("%s: %s: has no effect for the kind %s", filepath.Join(c.Dir, "expect.yaml"), field, c.Header.Kind)
		}
	}
	if c.Header.Kind == v1alpha1.KindReportTarget && of == Source {
		return fmt.Errorf("%s: a case has a RemoteConfig; the kit sends no reports", filepath.Join(c.Dir, "config.yaml"))
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "served", filepath.FromSlash(e.File))); e.File != "" && err != nil {
		return fmt.Errorf("%s: file: %w", filepath.Join(c.Dir, "expect.yaml"), err)
	}
	return nil
}

// ReadExpectation reads expect.yaml, whose name is for errors.
func (c *Case) ReadExpectation(name string, data []byte) error {
	if err := readYAML(name, data, &c.Expect); err != nil {
		return err
	}
	var problems []string
	problem := func(field, message string) { problems = append(problems, name+": "+field+": "+message) }
	for i, e := range c.Expect.Errors {
		if !slices.Contains(Codes(), e.Code) {
			problem(fmt.Sprintf("errors[%d].code", i), "must be one of "+strings.Join(Codes(), ", "))
		}
		if e.Final && e.Code != pluginv1.CodePrecondition.String() {
			problem(fmt.Sprintf("errors[%d].final", i), "only a Precondition can be final")
		}
	}
	if !slices.Contains([]string{"", "None", "AfterRun", "BeforeNext"}, c.Expect.Reboot) {
		problem("reboot", "must be None, AfterRun or BeforeNext")
	}
	for file, mode := range c.Expect.Modes {
		if bits, err := strconv.ParseUint(mode, 8, 32); err != nil || bits > 0o7777 {
			problem("modes."+file, `must be an octal string such as "0600"`)
		}
	}
	if c.Refused() && c.Expect.Changes != nil {
		problem("changes", "a refused document has none")
	}
	if c.Refused() && c.Expect.Claims != nil {
		problem("claims", "a refused document has none")
	}
	if c.Refused() && (c.Expect.File != "" || c.Expect.SHA256 != "") {
		problem("file, sha256", "a refused document has no object")
	}
	if digest := c.Expect.SHA256; digest != "" && (len(digest) != 2*sha256.Size || strings.Trim(digest, "0123456789abcdef") != "") {
		problem("sha256", "must be 64 hexadecimal digits in lower case")
	}
	if !c.Refused() && c.Expect.Facts != nil {
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
	root, err := Parse(body)
	if err != nil {
		return nil, err
	}
	return Encode(root["spec"])
}

// Document returns the document as JSON, with the canary in place of the placeholder, and with the values of the counterpart
// unless they are nil. It sets the header of the case.
func (c *Case) Document(canary string, values map[string]string) ([]byte, error) {
	name := filepath.Join(c.Dir, "config.yaml")
	config := Fill(c.Config, canary)
	for key, value := range values {
		config = bytes.ReplaceAll(config, []byte("${"+key+"}"), []byte(value))
	}
	if left := regexp.MustCompile(`\$\{[A-Za-z0-9_-]+\}`).Find(config); values != nil && left != nil {
		return nil, fmt.Errorf("%s has %s, which has no value: define it (--define NAME=VALUE, or Suite.Setup)", name, left)
	}
	data, err := DecodeOne(name, config)
	if err != nil {
		return nil, err
	}
	if c.Header, err = HeaderOf(data); err != nil {
		return nil, err
	}
	at, err := FieldsWith(data, canary)
	if err != nil {
		return nil, err
	}
	if !sameFields(c.Expect.Secrets, at) {
		return nil, fmt.Errorf("%s: %s is in %q, but the secrets of expect.yaml are %q",
			name, Placeholder, at, c.Expect.Secrets)
	}
	return data, nil
}

// DecodeOne decodes a stream of one document to JSON.
func DecodeOne(name string, text []byte) ([]byte, error) {
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

// Fill replaces the placeholder of secrets by the canary.
func Fill(data []byte, canary string) []byte {
	return bytes.ReplaceAll(data, []byte(Placeholder), []byte(canary))
}
