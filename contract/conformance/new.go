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
	c := &Case{Name: filepath.Base(dir), dir: dir, config: text}
	if err := c.findSecrets(file, newCanary()); err != nil {
		return err
	}
	s.Cases, s.shared = []*Case{c}, &shared{}
	r, err := s.newRunner(ctx, 0)
	if err != nil {
		return err
	}
	return errors.Join(r.record(ctx, file), r.end())
}

// findSecrets sets the secrets of the case to the fields with the placeholder, and its header.
func (c *Case) findSecrets(file, canary string) error {
	data, err := decodeOne(file, fill(c.config, canary))
	if err != nil {
		return err
	}
	if c.header, err = headerOf(data); err != nil {
		return err
	}
	fields, err := fieldsWith(data, canary)
	for i, field := range fields {
		fields[i] = strings.TrimSuffix(field, ".value")
	}
	c.expect.Secrets = fields
	return err
}

// record runs the plugin and writes the case.
func (r *runner) record(ctx context.Context, file string) error {
	f, err := r.fixture()
	if err != nil {
		return err
	}
	defer f.close()
	p, err := f.start(ctx)
	if err != nil {
		return fmt.Errorf("the plugin does not start: %w", err)
	}
	if err := f.hideSecrets(ctx, p, file); err != nil {
		return err
	}
	before, err := readTree(f.root)
	if err != nil {
		return err
	}
	plan, err := p.plan(ctx, f.planning())
	if err != nil {
		if err := r.c.expectError(err); err != nil {
			return err
		}
		return f.writeCase(nil)
	}
	if p.role != configurator {
		got, err := p.get(ctx, f.planning(), query{})
		if err == nil {
			err = r.expectBytes(got)
		}
		return errors.Join(err, f.writeCase(nil))
	}
	ids, reboot := []string{}, pluginv1.RebootNone
	for _, change := range plan.Changes {
		ids, reboot = append(ids, change.ID), max(reboot, change.Reboot)
	}
	r.c.expect.Changes = &ids
	if reboot != pluginv1.RebootNone {
		r.c.expect.Reboot = reboot.String()
	}
	if err := p.apply(ctx, f.applying(), 0, nil).failure(); err != nil {
		return fmt.Errorf("the document cannot be applied, so there is no tree to expect; put what it needs into %s: %w",
			filepath.Join(r.c.dir, "root"), err)
	}
	after, err := readTree(f.root)
	if err != nil {
		return err
	}
	if len(differences(before.withFiles(), after.withFiles(), aspects{modes: true})) == 0 {
		return f.writeCase(nil)
	}
	return f.writeCase(after.withFiles())
}

// hideSecrets replaces the values of the fields that Describe lists as secret by the placeholder.
func (f *fixture) hideSecrets(ctx context.Context, p *plugin, file string) error {
	c := f.runner.c
	d, err := p.describe(ctx, f.planning(), false)
	if err != nil {
		return fmt.Errorf("describe the plugin: %w", err)
	}
	kind, _ := d.Serves(c.header.apiVersion, c.header.kind)
	root, err := parse(f.runner.document)
	if err != nil {
		return err
	}
	var problems []error
	walk(root, "", func(at document.Path, value string) any {
		secret := slices.ContainsFunc(kind.SecretFields, func(pattern string) bool { return matchesField(pattern, string(at)) })
		if !secret || strings.Contains(value, f.runner.canary) {
			return value
		}
		if n := bytes.Count(c.config, []byte(value)); value == "" || n != 1 {
			problems = append(problems, fmt.Errorf("the value of the secret field %s occurs %d times in %s: write %s in its place",
				at, n, file, placeholder))
			return value
		}
		c.config = hide(file, c.config, value, f.runner.canary)
		return value
	})
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if err := c.findSecrets(file, f.runner.canary); err != nil {
		return err
	}
	f.runner.document, err = c.document(f.runner.canary, f.runner.values())
	return err
}

// hide replaces a value of a document by the placeholder, in quotes, because the braces of a bare one are no valid YAML in
// a flow mapping. A value that is in quotes already or in a block gets none, because they would be a part of the value.
func hide(file string, text []byte, value, canary string) []byte {
	quoted := bytes.Replace(text, []byte(value), []byte(`"`+placeholder+`"`), 1)
	if data, err := decodeOne(file, fill(quoted, canary)); err == nil {
		if literal, err := fieldsWith(data, `"`+canary); err == nil && len(literal) == 0 {
			return quoted
		}
	}
	return bytes.Replace(text, []byte(value), []byte(placeholder), 1)
}

// expectError makes an answer of Plan the expectation.
func (c *Case) expectError(answer error) error {
	e := contractError(answer)
	if e == nil || !slices.Contains(codes(), e.Code.String()) {
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
		c.expect.Errors = append(c.expect.Errors, expectedError{Code: e.Code.String(), Field: field, Final: e.Final})
	}
	return nil
}

// writeCase writes the files of a case. The tree is that of expect/; nil writes none.
func (f *fixture) writeCase(after tree) error {
	c := f.runner.c
	if err := os.MkdirAll(c.dir, 0o755); err != nil { //nolint:gosec // a directory of sources
		return err
	}
	if after != nil {
		if err := f.writeExpected(after, filepath.Join(c.dir, "expect")); err != nil {
			return err
		}
	}
	var text bytes.Buffer
	if err := document.Encode(&text, c.expect); err != nil {
		return err
	}
	err := errors.Join(write(filepath.Join(c.dir, "expect.yaml"), text.Bytes(), 0o644),
		write(filepath.Join(c.dir, "config.yaml"), c.config, 0o644))
	if err != nil {
		return err
	}
	_, err = loadCase(c.dir)
	return err
}

// writeExpected copies what differs from the base tree, with the placeholder in place of the canary, and records modes.
func (f *fixture) writeExpected(after tree, dir string) error {
	base := tree{}
	if f.runner.base != "" {
		var err error
		if base, err = readTree(f.runner.base); err != nil {
			return err
		}
	}
	changed := tree{}
	for name, e := range after {
		if was, existed := base[name]; !e.mode.IsDir() && (!existed || was.differs(e, aspects{modes: true}) != "") {
			changed[name] = e
		}
	}
	changed = changed.withParents(after)
	unfill := func(data []byte) []byte { return bytes.ReplaceAll(data, []byte(f.runner.canary), []byte(placeholder)) }
	c := f.runner.c
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a directory of sources
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		e := changed[name]
		normal := normalMode(e.mode)
		if err := copyOne(filepath.Join(f.root, filepath.FromSlash(name)), filepath.Join(dir, filepath.FromSlash(name)), normal, unfill); err != nil {
			return fmt.Errorf("write %s: %w", dir, err)
		}
		if e.mode.Type() != os.ModeSymlink && normal&modeBits != e.mode&modeBits {
			if c.expect.Modes == nil {
				c.expect.Modes = map[string]string{}
			}
			c.expect.Modes[name] = fmt.Sprintf("%04o", octalOf(e.mode))
		}
	}
	return nil
}
