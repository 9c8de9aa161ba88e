package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Suite is a plugin and the cases that it is judged by.
type Suite struct {
	// Binary is the plugin.
	Binary string
	// Cases are what LoadCases found.
	Cases []*Case
	// Root, if set, is a tree that every case's root/ and expect/ are laid over, for example an image of the operating
	// system. It is copied for each check.
	Root string
	// Only, if set, names the checks to judge by.
	Only []string
}

// trial is one case of a suite that is being judged.
type trial struct {
	c            *Case
	binary, base string
	dir, sockets string
	canary       string
	claimKey     []byte
	document     []byte
	// representative marks the case with which what depends on no case is judged.
	representative bool

	// unsettled says that outcome failed.
	unsettled bool
	// stillborn names the check for which the plugin did not start. It is told once.
	stillborn string

	once      sync.Once
	reference reference
}

// Judge judges every case by every check, one after the other, and gives each result to tell. The error is the judge's own
// trouble, that of Startable, or that of ctx.
func (s Suite) Judge(ctx context.Context, tell func(Result)) error {
	if err := s.Startable(); err != nil {
		return err
	}
	for i := range s.Cases {
		t, err := s.begin(i)
		if err != nil {
			return err
		}
		for _, check := range s.checks() {
			result, err := t.judge(ctx, check)
			if err != nil {
				return errors.Join(err, t.end())
			}
			tell(result)
		}
		if err := t.end(); err != nil {
			return err
		}
	}
	return nil
}

// checks are those to judge by.
func (s Suite) checks() []Check {
	return slices.DeleteFunc(Checks(), func(c Check) bool { return s.Only != nil && !slices.Contains(s.Only, c.Name) })
}

// begin prepares the case with this index. End it with end.
func (s Suite) begin(index int) (*trial, error) {
	t := &trial{c: s.Cases[index], canary: newCanary(), claimKey: newClaimKey(), representative: index == s.representative()}
	var err error
	if t.binary, err = filepath.Abs(s.Binary); err != nil {
		return nil, err
	}
	if s.Root != "" {
		if t.base, err = filepath.Abs(s.Root); err != nil {
			return nil, err
		}
	}
	if t.document, err = t.c.document(t.canary); err != nil {
		return nil, err
	}
	// Not below the test's own directory: the path of a socket has room for a hundred characters.
	if t.dir, err = os.MkdirTemp("", "conformance-"); err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	t.sockets = filepath.Join(t.dir, "s")
	if err := os.Mkdir(t.sockets, 0o700); err != nil {
		return nil, errors.Join(err, t.end())
	}
	return t, nil
}

func (t *trial) end() error { return os.RemoveAll(t.dir) }

// representative is the first case that is applied, else the first.
func (s Suite) representative() int {
	for i, c := range s.Cases {
		if !c.refused() {
			return i
		}
	}
	return 0
}

// judge judges by one check.
func (t *trial) judge(ctx context.Context, check Check) (Result, error) {
	since := time.Now()
	if check.once && !t.representative {
		return skipped("does not depend on the case: judged with another one").result(t.c, check, since), nil
	}
	if t.stillborn != "" {
		return skipped("the plugin does not start, see %s", t.stillborn).result(t.c, check, since), nil
	}
	f, err := t.attempt(ctx, check)
	if ctx.Err() != nil {
		return Result{}, ctx.Err()
	}
	if err != nil {
		return Result{}, fmt.Errorf("%s: %s: %w", t.c.Name, check.Name, err)
	}
	t.unsettled = t.unsettled || check.Name == outcomeName && f.verdict == Fail
	return f.result(t.c, check, since), nil
}

func (t *trial) attempt(ctx context.Context, check Check) (finding, error) {
	b, err := t.bench()
	if err != nil {
		return finding{}, err
	}
	defer b.close()
	f, err := check.run(ctx, b)
	var died *crash
	if !errors.As(err, &died) {
		return f, err
	}
	if died.stillborn {
		t.stillborn = check.Name
		return failed("the plugin does not start: %v", died).of("H-10"), nil
	}
	return failed("%v", died), nil
}

// reference is an undisturbed run, which others are compared with.
type reference struct {
	before, after tree
	// contents are those of the files that the run wrote.
	contents map[string][]byte
	run      applied
	// reason says why there is none.
	reason string
}

// undisturbed is the run of this case, made once.
func (t *trial) undisturbed(ctx context.Context) (reference, error) {
	var err error
	t.once.Do(func() { t.reference, err = t.makeReference(ctx) })
	return t.reference, err
}

// settled is undisturbed for those that compare trees with it: where the case does not end as it shall, the plugin may make
// another tree each time, and each of them would blame what it does for that.
func (t *trial) settled(ctx context.Context) (reference, error) {
	r, err := t.undisturbed(ctx)
	if r.reason == "" && t.unsettled {
		r.reason = "without disturbance the case does not end as it must, see " + outcomeName
	}
	return r, err
}

func (t *trial) makeReference(ctx context.Context) (r reference, err error) {
	if t.c.refused() {
		return reference{reason: "the document is refused"}, nil
	}
	r.reason = "the run that is not disturbed fails, see " + outcomeName
	b, err := t.bench()
	if err != nil {
		return r, err
	}
	defer b.close()
	if r.before, err = readTree(b.root); err != nil {
		return r, err
	}
	p, err := b.start(ctx)
	if err != nil {
		return r, nil // the check that is named judges why
	}
	r.run = p.apply(ctx, b.applying(), 0, nil)
	if protocolBroken(r.run.err) {
		r.reason = "the events of Apply break the protocol, see " + eventsName
		return r, nil
	}
	if r.run.failure() != nil {
		return r, nil
	}
	r.reason = ""
	if r.after, err = readTree(b.root); err != nil {
		return r, err
	}
	r.contents, err = r.written(b.root)
	return r, err
}

// written reads the files that the run made or changed.
func (r reference) written(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, e := range r.after {
		before, existed := r.before[name]
		if !e.mode.IsRegular() || existed && before.differs(e, aspects{modes: true}) == "" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		out[name] = data
	}
	return out, nil
}

// content is that of a file after the undisturbed run.
func (t *trial) content(r reference, name string) ([]byte, error) {
	if data, ok := r.contents[name]; ok {
		return data, nil
	}
	below := filepath.FromSlash(name)
	data, err := os.ReadFile(filepath.Join(t.c.dir, "root", below))
	if errors.Is(err, fs.ErrNotExist) && t.base != "" {
		return os.ReadFile(filepath.Join(t.base, below))
	}
	return data, err
}

// protocolBroken says that a plugin lives, and ended the stream of Apply as it must not: an error of the contract belongs
// into finished, so that one that Apply itself returns is the client's about the stream, or a status.
func protocolBroken(err error) bool {
	var e *pluginv1.Error
	return errors.As(err, &e) || errors.Is(err, pluginv1.ErrCrashed) && strings.Contains(err.Error(), "without finished")
}
