package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/answers"
	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// NewCase writes a case to dir from a file with one document: the answers of the plugin are the expectation. dir may have
// the tree before Apply in root/. Secret fields get the placeholder of the canary; a value that the file contains more than
// once, or in quotes with escapes, is an error.
func (s Suite) NewCase(ctx context.Context, file, dir string) error {
	for _, name := range []string{"config.yaml", "expect", "expect.yaml"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s exists: choose another directory, or remove it", filepath.Join(dir, name))
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	c := &testcase.Case{Name: filepath.Base(dir), Dir: dir, Config: text}
	if err := findSecrets(c, file, testcase.NewCanary()); err != nil {
		return err
	}
	s.Cases, s.shared = []*Case{{Name: c.Name, files: c}}, &rig.Shared{}
	r, err := s.newRunner(ctx, 0)
	if err != nil {
		return err
	}
	return errors.Join(record(ctx, r, file), r.End())
}

// findSecrets sets the secrets of the case to the fields with the placeholder, and its header.
func findSecrets(c *testcase.Case, file, canary string) error {
	data, err := testcase.DecodeOne(file, testcase.Fill(c.Config, canary))
	if err != nil {
		return err
	}
	if c.Header, err = testcase.HeaderOf(data); err != nil {
		return err
	}
	fields, err := testcase.FieldsWith(data, canary)
	for i, field := range fields {
		fields[i] = strings.TrimSuffix(field, ".value")
	}
	c.Expect.Secrets = fields
	return err
}

// record runs the plugin and writes the case.
func record(ctx context.Context, r *rig.Runner, file string) error {
	f, err := r.Fixture()
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := f.Start(ctx)
	if err != nil {
		return fmt.Errorf("the plugin does not start: %w", err)
	}
	if err := hideSecrets(ctx, f, p, file); err != nil {
		return err
	}
	before, err := trees.ReadTree(f.Root)
	if err != nil {
		return err
	}
	plan, err := p.CallPlan(ctx, f.Planning())
	if err != nil {
		if err := expectError(r.Case, err); err != nil {
			return err
		}
		return writeCase(f, nil)
	}
	if p.Role != testcase.Configurator {
		got, err := p.Get(ctx, f.Planning(), process.Query{})
		if err == nil {
			err = r.ExpectBytes(got)
		}
		return errors.Join(err, writeCase(f, nil))
	}
	ids, reboot := []string{}, pluginv1.RebootNone
	for _, change := range plan.Changes {
		ids, reboot = append(ids, change.ID), max(reboot, change.Reboot)
	}
	r.Case.Expect.Changes = &ids
	if reboot != pluginv1.RebootNone {
		r.Case.Expect.Reboot = reboot.String()
	}
	if err := p.CallApply(ctx, f.Applying(), 0, nil).Failure(); err != nil {
		return fmt.Errorf("the document cannot be applied, so there is no tree to expect; put what it needs into %s: %w",
			filepath.Join(r.Case.Dir, "root"), err)
	}
	after, err := trees.ReadTree(f.Root)
	if err != nil {
		return err
	}
	if len(trees.Differences(before.WithFiles(), after.WithFiles(), trees.Aspects{Modes: true})) == 0 {
		return writeCase(f, nil)
	}
	return writeCase(f, after.WithFiles())
}

// hideSecrets replaces the values of the fields that Describe lists as secret by the placeholder.
func hideSecrets(ctx context.Context, f *rig.Fixture, p *process.Plugin, file string) error {
	c := f.Runner.Case
	d, err := p.CallDescribe(ctx, f.Planning(), false)
	if err != nil {
		return fmt.Errorf("describe the plugin: %w", err)
	}
	kind, _ := d.Serves(c.Header.APIVersion, c.Header.Kind)
	root, err := testcase.Parse(f.Runner.Document)
	if err != nil {
		return err
	}
	var problems []error
	testcase.Walk(root, "", func(at document.Path, value string) any {
		secret := slices.ContainsFunc(kind.SecretFields, func(pattern string) bool { return answers.MatchesField(pattern, string(at)) })
		if !secret || strings.Contains(value, f.Runner.Canary) {
			return value
		}
		if n := bytes.Count(c.Config, []byte(value)); value == "" || n != 1 {
			problems = append(problems, fmt.Errorf("the value of the secret field %s occurs %d times in %s: write %s in its place",
				at, n, file, testcase.Placeholder))
			return value
		}
		c.Config = hide(file, c.Config, value, f.Runner.Canary)
		return value
	})
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if err := findSecrets(c, file, f.Runner.Canary); err != nil {
		return err
	}
	f.Runner.Document, err = c.Document(f.Runner.Canary, f.Runner.Values())
	return err
}

// hide replaces a value of a document by the placeholder, in quotes, because the braces of a bare one are no valid YAML in
// a flow mapping. A value that is in quotes already or in a block gets none, because they would be a part of the value.
func hide(file string, text []byte, value, canary string) []byte {
	quoted := bytes.Replace(text, []byte(value), []byte(`"`+testcase.Placeholder+`"`), 1)
	if data, err := testcase.DecodeOne(file, testcase.Fill(quoted, canary)); err == nil {
		if literal, err := testcase.FieldsWith(data, `"`+canary); err == nil && len(literal) == 0 {
			return quoted
		}
	}
	return bytes.Replace(text, []byte(value), []byte(testcase.Placeholder), 1)
}

// expectError makes an answer of Plan the expectation.
func expectError(c *testcase.Case, answer error) error {
	e := process.ContractError(answer)
	if e == nil || !slices.Contains(testcase.Codes(), e.Code.String()) {
		return fmt.Errorf("plan fails, and no case can expect this: %w", answer)
	}
	fields := []string{}
	for _, v := range e.Violations {
		fields = append(fields, v.Field)
	}
	if len(fields) == 0 {
		fields = []string{""}
	}
	slices.Sort(fields)
	for _, field := range slices.Compact(fields) {
		c.Expect.Errors = append(c.Expect.Errors, testcase.ExpectedError{Code: e.Code.String(), Field: field, Final: e.Final})
	}
	return nil
}

// writeCase writes the files of a case. The tree is that of expect/; nil writes none.
func writeCase(f *rig.Fixture, after trees.Tree) error {
	c := f.Runner.Case
	if err := os.MkdirAll(c.Dir, 0o755); err != nil { //nolint:gosec // a directory of sources
		return err
	}
	if after != nil {
		if err := writeExpected(f, after, filepath.Join(c.Dir, "expect")); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	if err := document.Encode(&text, c.Expect); err != nil {
		return err
	}
	err := errors.Join(trees.Write(filepath.Join(c.Dir, "expect.yaml"), text.Bytes(), 0o644),
		trees.Write(filepath.Join(c.Dir, "config.yaml"), c.Config, 0o644))
	if err != nil {
		return err
	}
	_, err = testcase.LoadCase(c.Dir)
	return err
}

// writeExpected copies what differs from the base tree, with the placeholder in place of the canary, and records modes.
func writeExpected(f *rig.Fixture, after trees.Tree, dir string) error {
	base := trees.Tree{}
	if f.Runner.Base != "" {
		var err error
		if base, err = trees.ReadTree(f.Runner.Base); err != nil {
			return err
		}
	}
	changed := trees.Tree{}
	for name, e := range after {
		if was, existed := base[name]; !e.Mode.IsDir() && (!existed || was.Differs(e, trees.Aspects{Modes: true}) != "") {
			changed[name] = e
		}
	}
	changed = changed.WithParents(after)
	unfill := func(data []byte) []byte {
		return bytes.ReplaceAll(data, []byte(f.Runner.Canary), []byte(testcase.Placeholder))
	}
	c := f.Runner.Case
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a directory of sources
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		e := changed[name]
		normal := trees.NormalMode(e.Mode)
		if err := trees.CopyOne(filepath.Join(f.Root, filepath.FromSlash(name)), filepath.Join(dir, filepath.FromSlash(name)), normal, unfill); err != nil {
			return fmt.Errorf("write %s: %w", dir, err)
		}
		if e.Mode.Type() != os.ModeSymlink && normal&trees.ModeBits != e.Mode&trees.ModeBits {
			if c.Expect.Modes == nil {
				c.Expect.Modes = map[string]string{}
			}
			c.Expect.Modes[name] = fmt.Sprintf("%04o", trees.OctalOf(e.Mode))
		}
	}
	return nil
}
