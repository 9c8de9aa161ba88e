package promise_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
)

// subject is a machine that a stream is tried on.
type subject interface {
	host(t *testing.T, stream, command string) step
	entries(t *testing.T) map[string]entry
}

// comparison is what the commands did on a machine.
type comparison struct {
	root                              string // of an image
	elsewhere                         bool   // a document is for other machines: validate reads it, and plan does not
	validated, planned, applied, next step
	before, after                     map[string]entry
	faults                            []string
}

func (l *comparison) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *comparison) exits() string {
	return fmt.Sprint(l.validated.exit, l.planned.exit, l.applied.exit, l.next.exit)
}

// try runs the commands on a machine, with something between plan and apply, and looks where they contradict each other or the files.
func try(t *testing.T, m subject, root, text string, between func()) *comparison {
	t.Helper()
	r := &comparison{root: root, before: m.entries(t), elsewhere: strings.Contains(text, windowsOnly) || strings.Contains(text, fedoraOnly) || strings.Contains(text, debianOnly)}
	r.validated = m.host(t, text, "validate")
	r.planned = m.host(t, text, "plan")
	if d := differences(r.before, m.entries(t)); len(d) > 0 {
		r.fault("a plan changes the machine: %s", d)
	}
	between()
	r.applied = m.host(t, text, "apply")
	r.after = m.entries(t)
	r.next = m.host(t, text, "plan")
	r.errors()
	if r.planned.exit != report.ExitOK && r.planned.exit != report.ExitDiffers {
		r.refused()
	} else if len(r.planned.pending) == 0 {
		r.settled()
	}
	for name, e := range r.after {
		if strings.HasSuffix(name, ".machineadm-tmp") && r.before[name] != e {
			r.fault("a temporary file stays: %s", name)
		}
	}
	return r
}

// faults are the faults of a scene. It returns the exit codes of the commands, too.
func (l *lane) faults(t *testing.T, c *scene) (faults []string, exits string) {
	t.Helper()
	m := l.image(t, c)
	var killed map[string]entry
	r := try(t, m, m.root, c.stream.text(), func() {
		if c.killed != 0 && !c.locked() && os.Geteuid() == 0 {
			killed = l.kill(t, m, c)
		}
	})
	if d := differences(r.after, killed); killed != nil && len(d) > 0 {
		r.fault("killed and run again, an apply ends elsewhere: %s", d)
	}
	return r.faults, r.exits()
}

// errors holds the errors of the commands beside each other.
func (l *comparison) errors() {
	for _, s := range []step{l.validated, l.planned, l.applied, l.next} {
		if s.exit == report.ExitFailed {
			l.fault("a defect is reported: %v", problems(s))
		}
	}
	// An error of no document, such as an /etc that is no directory, ends a plan before it looks at documents.
	unreadable := slices.ContainsFunc(l.planned.report.Errors, func(e report.Error) bool { return e.Document == "" })
	if l.validated.exit == report.ExitUsage && !unreadable && !l.elsewhere {
		// The claims of a document end where its planning does: on a machine that lacks something, earlier than on an empty root.
		lacking := slices.ContainsFunc(l.planned.report.Errors, func(e report.Error) bool { return e.Code == "Precondition" })
		for _, p := range problems(l.validated) {
			if !slices.Contains(problems(l.planned), p) && (!lacking || !strings.HasPrefix(p, report.CodeConflict)) {
				l.fault("an error of validate that the plan does not have: %s", p)
			}
		}
	}
	for _, e := range l.planned.report.Errors {
		if e.Code == "InvalidConfig" && l.validated.exit == report.ExitOK {
			l.fault("validate says nothing of %s %s: %s", e.Document, e.Field, e.Message)
		}
	}
}

func problems(s step) []string {
	var out []string
	for _, e := range s.report.Errors {
		out = append(out, fmt.Sprintf("%s %s %s: %s (%s)", e.Code, e.Document, e.Field, e.Message, e.Hint))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refused: what a plan refuses, an apply refuses for the same reasons, and changes nothing.
func (l *comparison) refused() {
	if l.applied.exit != l.planned.exit {
		l.fault("plan %d, apply %d: %v", l.planned.exit, l.applied.exit, problems(l.applied))
	}
	if d := differences(l.before, l.after); len(d) > 0 {
		l.fault("refused, and changed: %s", d)
	}
	if a, b := problems(l.planned), problems(l.applied); !slices.Equal(a, b) {
		l.fault("errors of the plan: %v\nof the apply: %v", a, b)
	}
}

// settled: a plan without a document that waits comes true, change by change and byte by byte, and then there is nothing to do.
func (l *comparison) settled() {
	if os.Geteuid() != 0 && strings.Contains(fmt.Sprint(problems(l.applied)), syscall.EPERM.Error()) {
		return // a plan asks for no rights of its user, such as that to set owners, because another user can apply it
	}
	if l.applied.exit != report.ExitOK {
		l.fault("plan %d, apply %d: %v", l.planned.exit, l.applied.exit, problems(l.applied))
		return
	}
	if l.next.exit != report.ExitOK {
		l.fault("not converged: %d %v %v", l.next.exit, l.next.changes, problems(l.next))
	}
	if d := differences(l.before, l.after); l.planned.exit == report.ExitOK && len(d) > 0 {
		l.fault("plan 0, apply changes: %s", d)
	}
	want := slices.DeleteFunc(slices.Clone(l.planned.changes), func(c change) bool { return c.NeedsLive && l.root != "" })
	for i := range max(len(want), len(l.applied.made)) {
		switch {
		case i >= len(want):
			l.fault("made and not planned: %v", l.applied.made[i])
		case i >= len(l.applied.made):
			l.fault("planned and not made: %v", want[i])
		case want[i] != l.applied.made[i]:
			l.fault("planned: %v\nmade: %v", want[i], l.applied.made[i])
		}
	}
	if l.root != "" {
		l.files(want)
	}
}

// files: each path that has changed belongs to a change, and has the content of its diff.
func (l *comparison) files(changes []change) {
	contents := map[string]string{}
	touched := map[string]bool{}
	for _, c := range changes {
		name, ok := strings.CutPrefix(c.ID, "file:")
		if !ok {
			continue
		}
		if to, err := securejoin.SecureJoin(l.root, name); err == nil { // a link of the image can lead elsewhere
			touched[strings.TrimPrefix(to, l.root)] = true
		}
		touched[name] = true
		from, changed := contents[name]
		if !changed {
			from = l.before[name].text
		}
		if !strings.Contains(c.Diff, "\n@@") { // the content is not shown
			delete(contents, name)
			continue
		}
		to, err := patch(from, c.Diff)
		if err != nil {
			l.fault("the diff of %s does not fit: %v", name, err)
			return
		}
		contents[name] = to
	}
	for name, content := range contents {
		if e, there := l.after[name]; there && e.mode.IsRegular() && e.text != content {
			l.fault("the diff of %s has %q, and the file %q", name, content, e.text)
		}
	}
	all := maps.Clone(l.before)
	maps.Copy(all, l.after)
	for name, e := range all {
		// Directories come and go with their files, links are of units, and the choices of providers are the host's.
		own := e.mode.IsDir() || e.mode&fs.ModeSymlink != 0 || strings.HasSuffix(name, strings.TrimPrefix(choices, "etc")) // /etc can be a link
		if !own && l.before[name] != l.after[name] && !touched[name] {
			l.fault("changed without a change of the plan: %s", name)
		}
	}
}

// patch applies a unified diff.
func patch(text, diff string) (string, error) {
	var lines, out []string
	if text != "" {
		lines = strings.SplitAfter(text, "\n")
	}
	at := 0
	_, hunks, _ := strings.Cut(diff, "\n@@")
	var last byte
	for line := range strings.Lines("@@" + hunks) {
		if strings.HasPrefix(line, "@@") {
			var from int
			if _, err := fmt.Sscanf(line, "@@ -%d", &from); err != nil {
				return "", err
			}
			if from-1 > len(lines) {
				return "", errors.New("the file is shorter")
			}
			if at < from-1 {
				out, at = append(out, lines[at:from-1]...), from-1
			}
			continue
		}
		if line[0] == '\\' { // no newline at the end
			if last != '-' {
				out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], "\n")
			}
			continue
		}
		if last = line[0]; last != '+' {
			if at == len(lines) || strings.TrimSuffix(lines[at], "\n") != strings.TrimSuffix(line[1:], "\n") {
				return "", fmt.Errorf("line %d is not %q", at+1, line[1:])
			}
			at++
		}
		if last != '-' {
			out = append(out, line[1:])
		}
	}
	return strings.Join(append(out, lines[at:]...), ""), nil
}

// kill applies the stream in a copy, is killed, applies it again, and returns the tree.
func (l *lane) kill(t *testing.T, m *machine, c *scene) map[string]entry {
	t.Helper()
	k := *m
	k.root, k.killed = filepath.Join(l.dir, "copy"), c.killed
	require.NoError(t, os.RemoveAll(k.root))
	require.NoError(t, exec.CommandContext(t.Context(), "cp", "-a", m.root, k.root).Run())
	k.host(t, c.stream.text(), "apply")
	k.killed = 0
	deadline := time.Now().Add(needs.Timeout(time.Minute))
	for again := true; again; { // plugins of the killed run end a moment after it, and until then hold the lock
		again = k.host(t, c.stream.text(), "apply").exit == report.ExitLocked && time.Now().Before(deadline)
	}
	return k.entries(t)
}
