package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// defect is one way to be wrong.
type defect struct {
	// name is the provider that has it.
	name string
	// kind is the one that it serves; empty for Files.
	kind string
	// check is the one that finds it; empty for sound.
	check string
	// says is part of the reason that the check gives.
	says string
	// answers marks a defect of what Describe and Plan answer.
	answers bool
	// file is the binary's own name, where it differs from the provider's.
	file string
	// machine marks a defect that needs a case that names a place of this machine too, which is the test's own.
	machine bool

	// write takes the place of how a file is written; sound writes it well.
	write func(root string, spec sdk.FileSpec, sound func() error) error
	// wrap takes the place of the whole.
	wrap func(pluginv1.Configurator) pluginv1.Configurator
	// fetch takes the place of Fetch, passphrase that of Passphrase, and describe changes their descriptions.
	fetch func(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error
	// store takes the place of Store, and remove that of Remove.
	store      func(ctx context.Context, sound pluginv1.Source, r pluginv1.StoreRequest) (pluginv1.Stored, error)
	remove     func(ctx context.Context, sound pluginv1.Source, r pluginv1.RemoveRequest) error
	passphrase func(ctx context.Context, sound pluginv1.KeyProvider, r pluginv1.PassphraseRequest) ([]byte, error)
	describe   func(*pluginv1.Description)
	// answer takes the place of what the server answers to a call.
	answer func(request, response any, err error) (any, error)
	// stream takes the place of the server's streams.
	stream grpc.StreamServerInterceptor
	// again makes one more change of a file that is as it should be.
	again func(root string, spec sdk.FileSpec) error
	// smallMessages keeps gRPC's own limit of 4 MiB.
	smallMessages bool
	// cookieless serves also without the cookie, lingering never ends by itself, late registers an Apply in its handler.
	cookieless, lingering, late bool
	// quoting quotes a path that it refuses.
	quoting bool
	// forgetful reloads only after a change of the same Apply.
	forgetful bool
	// unchecked takes a reload that fails for one that succeeds. untried reports the failure, and the next Apply does not reload.
	unchecked, untried bool
	// leaving leaves a process in a session of its own, as a daemon that OpenRC starts.
	leaving bool
	// mounts marks a defect that shows only where the kit can make a mount namespace.
	mounts bool
	// ignores is a field of Timesync that has no effect.
	ignores string
}

// pause is long enough for something to come in between.
const pause = 60 * time.Millisecond

func defects() []defect {
	return slices.Concat(defectsOfConfigurators(), defectsOfChanges(), defectsOfSources(), defectsOfKeyProviders())
}

func defectsOfConfigurators() []defect {
	return []defect{
		{name: "sound", machine: true},
		{name: "hosts", file: "hosts", check: "describe", says: "machineadm-files-plugin-hosts, which machineadm looks for, but the file is called hosts"},
		{name: "misnamed", answers: true, check: "describe", says: `the name is "another-name"`, wrap: with(&wrapper{describe: misnamed})},
		{name: "unnamed", answers: true, check: "describe", says: "P-11", wrap: with(&wrapper{describe: func(d *pluginv1.Description) { d.Version = "" }})},
		{name: "vague", answers: true, check: "describe", says: "P-53", wrap: with(&wrapper{describe: vague})},
		{name: "open-hearted", answers: true, check: "describe", says: "spec.token is a secret of the case", wrap: with(&wrapper{describe: noSecretFields})},
		{name: "unasked", answers: true, check: "describe", says: "a JSON schema that was not asked for", answer: schemaUnasked},
		{name: "everywhere", answers: true, check: "describe", says: `distributions names "Debian GNU/Linux"`, wrap: with(&wrapper{describe: everywhere})},
		{name: "at-home", answers: true, check: "empty-root", says: "the fitness is ACTIVE", wrap: with(&wrapper{describe: atHome})},
		{name: "unhealthy", answers: true, check: "describe", says: "Check fails: rpc error", answer: unhealthy},
		{name: "affirmative", answers: true, check: "claims", says: `"unit:app.service#enabled" is of another value`, wrap: with(&wrapper{claim: affirmative})},
		{name: "null-averse", answers: true, check: "unknown-field", says: "with a provider that is null", wrap: with(&wrapper{request: nullAverse})},
		{name: "cookieless", check: "cookie", says: "the plugin writes its handshake line", cookieless: true},
		{name: "lingering", check: "shutdown", says: "the plugin still runs", lingering: true},
		{name: "late", check: "stop", says: "starts 3 changes and ends with stopped false", late: true},
		{name: "believing", check: "drift", says: "Plan lacks the change", wrap: func(m pluginv1.Configurator) pluginv1.Configurator { return believing{m} }},
		{name: "unlocking", check: "locks", says: ".machineadm-tmp, which another process had locked", write: unlocking},
		{name: "unclaimed-link", check: "claims", says: "the link /etc/app/enabled, which no claim names", wrap: with(&wrapper{planned: unclaimedLink})},
		{name: "quoting", check: "quotes", says: "spec.files[0].path, the error of Plan quotes it", quoting: true},
		{name: "forgetful-reload", check: "live", says: `after SIGKILL before the command "app-control reload" and another Apply`, forgetful: true},
		{name: "unchecked-reload", check: "live", says: `the command "app-control reload" fails, Apply succeeds`, unchecked: true},
		{name: "untried-reload", check: "live", says: `after the failure of the command "app-control reload" and another Apply`, untried: true},
		{name: "leaving", check: "live", says: "Apply leaves processes: 1", leaving: true},
		{name: "poll-blind", kind: v1alpha1.KindTimesync, check: "fields", says: `"spec.pools[0].minPoll"`, ignores: "minPoll"},
		{name: "one-by-one", kind: v1alpha1.KindTimesync, answers: true, check: "kind", says: "addresses-that-are-none: Plan answers", wrap: with(&wrapper{refused: firstFault})},
		{name: "summaryless", answers: true, check: "outcome", says: "(P-20): the plan has the change", wrap: with(&wrapper{planned: summaryless})},
		{name: "detailless", answers: true, check: "outcome", says: "without an ErrorDetail", answer: detailless},
		{name: "final", answers: true, check: "outcome", says: "final: true instead of false", wrap: with(&wrapper{failed: func(e *pluginv1.Error) { e.Final = true }})},
		{name: "no-facts", answers: true, check: "outcome", says: "with the facts map[] instead of map[missing:1]", wrap: with(&wrapper{failed: func(e *pluginv1.Error) { e.Facts = nil }})},
		{name: "unclaiming", answers: true, check: "claims", says: "3 changes and claims nothing", wrap: with(&wrapper{planned: unclaiming})},
		{name: "half-claiming", answers: true, check: "claims", says: "/etc/app/farewell, which no claim names", wrap: with(&wrapper{planned: halfClaiming})},
		{name: "forgetful", answers: true, check: "claims", says: "is not claimed any more", wrap: with(&wrapper{planned: forgetful})},
		{name: "unkeyed", answers: true, check: "claims", says: "is the same under another key", wrap: with(&wrapper{planned: unkeyed})},
		{name: "random", answers: true, check: "claims", says: "has another digest", wrap: with(&wrapper{planned: randomDigests})},
		{name: "own-digest", answers: true, check: "claims", says: "was not made of the content, the mode 0644 and the owner", wrap: with(&wrapper{claim: ownDigest})},
		{name: "sloppy", answers: true, check: "claims", says: "is not canonical", wrap: with(&wrapper{planned: sloppy})},
		{name: "contradictory", answers: true, check: "claims", says: "twice, with different values", answer: contradictory},
		{name: "chatty", answers: true, check: "claims", says: "has no key", answer: claimsUnasked},
	}
}

// defectsOfChanges are in the changes that a plan lists, and in what Apply makes of them.
func defectsOfChanges() []defect {
	return []defect{
		{name: "lists-other-files", answers: true, check: "files", says: "the tree after Apply would be another one", wrap: with(&wrapper{planned: listsOtherFiles})},
		{name: "lists-too-little", answers: true, check: "files", says: "the tree after Apply would be another one", wrap: with(&wrapper{planned: listsTooLittle})},
		{name: "blind", answers: true, check: "files", says: "again", wrap: with(&wrapper{request: blind})},
		{name: "never-done", check: "outcome", says: `still wants "again"`, wrap: with(&wrapper{planned: neverDone})},
		{name: "appending", check: "outcome", says: "+hello, world", again: appendAgain},
		{name: "finished-twice", check: "events", says: "after finished", stream: finishedTwice},
		{name: "unsaid", check: "events", says: "before changed for", stream: neverChanged},
		{name: "never-finished", check: "events", says: "without finished", stream: neverFinished},
		{name: "lenient", check: "unknown-field", says: "succeeded instead of answering InvalidConfig", wrap: with(&wrapper{request: lenient})},
		{name: "lenient-below", check: "unknown-field", says: "spec.files[0].conformanceUnknownField", wrap: with(&wrapper{request: lenientBelow})},
		{name: "touching", check: "plan-writes-nothing", says: "root: was touched", wrap: with(&wrapper{beforePlan: touch})},
		{name: "needs-etc", check: "empty-root", says: "instead of Precondition", wrap: with(&wrapper{beforePlan: needEtc})},
		{name: "any-target", check: "other-target", says: "instead of answering Unsupported", wrap: with(&wrapper{request: anyTarget})},
		{name: "small-messages", check: "large-document", says: "10 MiB", smallMessages: true},
		{name: "talkative", check: "secrets", says: "stderr", wrap: with(&wrapper{beforeApply: talk})},
		{name: "undeferred", check: "outcome", says: `Apply deferred [], and Plan then wants ["live"]`, wrap: with(&wrapper{planned: liveLeft})},
		{name: "half-deferred", check: "limit", says: `with limit 1 of 3 changes defers [], and without a limit ["live"]`, wrap: with(&wrapper{planned: liveLeft, finished: liveWithoutLimit})},
		{name: "endless", check: "limit", says: "limit 1 of 3 changes started 3", wrap: with(&wrapper{noLimit: true})},
		{name: "deaf", check: "stop", says: "each time all were made", wrap: with(&wrapper{deaf: true}), late: true, write: slowly},
		{name: "resentful", check: "stop", says: "stops the Apply that comes later", wrap: with(&wrapper{resentful: true})},
		{name: "littering", check: "kill", says: "should not be there", write: litter},
		{name: "in-two-steps", check: "kill", says: "/etc/app/farewell holds only the beginning", write: inTwoSteps},
		{name: "in-place", check: "in-one-step", says: "/etc/app/farewell, /etc/app/greeting", machine: true, write: inPlace},
		{name: "in-halves", check: "two-at-once", says: "+++ found/etc/app/", write: inHalves},
		{name: "umasked", check: "umask", says: "has the mode", write: umasked},
		{name: "trusting", check: "links-out", says: "followed it out", write: trusting},
		{name: "diary", check: "nothing-outside", says: "root.log should not be there", wrap: with(&wrapper{beforeApply: diary})},
		{name: "caching", check: "nothing-outside", says: "var-tmp/broken should not be there", mounts: true, wrap: with(&wrapper{beforePlan: cache})},
		{name: "below-usr", check: "outcome", says: "Apply changed something below /usr", write: belowUsr},
		{name: "rootless", check: "nothing-outside", says: machineName + "/settings: was written or touched", machine: true, write: rootless},
		{name: "rootless-directory", check: "nothing-outside", says: machineName + "/settings.d is new", machine: true, write: rootlessDirectory},
		{name: "shell", check: "no-command", says: "Apply on an image root ran a command", wrap: with(&wrapper{beforeApply: runTrue})},
	}
}

// binary is the name of the file.
func (d defect) binary() string { return cmp.Or(d.file, naming.Binary(cmp.Or(d.kind, kind), d.name)) }

func find(binary string) (defect, error) {
	all := defects()
	at := slices.IndexFunc(all, func(d defect) bool { return d.binary() == binary })
	if at < 0 {
		return defect{}, fmt.Errorf("there is no defect for the file %q", binary)
	}
	return all[at], nil
}

// wrapper is a Configurator around another one.
type wrapper struct {
	pluginv1.Configurator
	describe    func(*pluginv1.Description)
	planned     func(*pluginv1.Plan)
	claim       func(key []byte, c *pluginv1.Claim)
	finished    func(limit int, f *pluginv1.Finished)
	failed      func(*pluginv1.Error)
	refused     func(*pluginv1.Error)
	request     func(*pluginv1.Request) error
	beforePlan  func(pluginv1.Request) error
	beforeApply func(pluginv1.Request) error
	noLimit     bool
	deaf        bool
	resentful   bool
	applying    atomic.Bool
	stopped     atomic.Bool // while nothing was applied
}

func with(w *wrapper) func(pluginv1.Configurator) pluginv1.Configurator {
	return func(m pluginv1.Configurator) pluginv1.Configurator {
		w.Configurator = m
		return w
	}
}

func (w *wrapper) change(r pluginv1.Request, before func(pluginv1.Request) error) (pluginv1.Request, error) {
	if w.request != nil {
		if err := w.request(&r); err != nil {
			return r, err
		}
	}
	if before != nil {
		return r, before(r)
	}
	return r, nil
}

func (w *wrapper) Describe(ctx context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	changed, err := w.change(pluginv1.Request{Root: r.Root, Target: r.Target, Document: []byte("{}")}, nil)
	if err != nil {
		return pluginv1.Description{}, err
	}
	d, err := w.Configurator.Describe(ctx, pluginv1.DescribeRequest{Root: r.Root, Target: changed.Target})
	if w.describe != nil {
		w.describe(&d)
	}
	return d, err
}

func (w *wrapper) Plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	r, err := w.change(r, w.beforePlan)
	if err != nil {
		return pluginv1.Plan{}, err
	}
	plan, err := w.Configurator.Plan(ctx, r)
	if w.planned != nil && err == nil {
		w.planned(&plan)
	}
	for i := range plan.Claims {
		if w.claim != nil {
			w.claim(r.ClaimKey, &plan.Claims[i])
		}
	}
	return plan, w.fail(err)
}

func (w *wrapper) Apply(
	ctx context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	r, err := w.change(r, w.beforeApply)
	if err != nil {
		return pluginv1.Finished{}, err
	}
	if w.noLimit {
		limit = 0
	}
	if w.stopped.Load() {
		return pluginv1.Finished{Stopped: true}, nil
	}
	w.applying.Store(true)
	defer w.applying.Store(false)
	finished, err := w.Configurator.Apply(ctx, r, limit, send)
	if w.finished != nil {
		w.finished(limit, &finished)
	}
	return finished, w.fail(err)
}

// fail changes the error that says that a file is missing, or the one that says what is wrong with a document.
func (w *wrapper) fail(err error) error {
	e := pluginv1.AsError(err)
	if e == nil {
		return err
	}
	change := map[pluginv1.Code]func(*pluginv1.Error){pluginv1.CodePrecondition: w.failed, pluginv1.CodeInvalidConfig: w.refused}[e.Code]
	if change == nil {
		return err
	}
	changed := *e
	change(&changed)
	return &changed
}

func (w *wrapper) Stop(ctx context.Context) error {
	if w.deaf {
		return nil
	}
	if w.resentful && !w.applying.Load() {
		w.stopped.Store(true)
	}
	return w.Configurator.Stop(ctx)
}

// believing plans nothing once it has applied, whatever is on the machine.
type believing struct{ pluginv1.Configurator }

func (b believing) marker(r pluginv1.Request) string { return filepath.Join(r.StateDir, "done") }

func (b believing) Plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	plan, err := b.Configurator.Plan(ctx, r)
	if _, missing := os.Stat(b.marker(r)); r.StateDir != "" && missing == nil {
		plan.Changes = nil
	}
	return plan, err
}

func (b believing) Apply(
	ctx context.Context, r pluginv1.Request, limit int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	finished, err := b.Configurator.Apply(ctx, r, limit, send)
	if err == nil && finished.Error == nil && !finished.Stopped {
		err = os.WriteFile(b.marker(r), nil, 0o600)
	}
	return finished, err
}

func misnamed(d *pluginv1.Description) { d.Name = "another-name" }

func neverDone(p *pluginv1.Plan) {
	if len(p.Changes) == 0 {
		p.Changes = append(p.Changes, pluginv1.Change{ID: "again", Summary: "do it again"})
	}
}

func live() pluginv1.Change {
	return pluginv1.Change{ID: "live", Summary: "change the live machine", NeedsLive: true}
}

// liveLeft plans a change of the live machine once everything else matches.
func liveLeft(p *pluginv1.Plan) {
	if len(p.Changes) == 0 {
		p.Changes = append(p.Changes, live())
	}
}

// liveWithoutLimit defers that change, but not in an Apply with a limit.
func liveWithoutLimit(limit int, f *pluginv1.Finished) {
	if limit == 0 && f.Error == nil {
		f.Deferred = append(f.Deferred, live())
	}
}

// touch leaves everything as it is, but for the times of the root.
func touch(r pluginv1.Request) error { return os.Chtimes(r.Root, time.Now(), time.Now()) }

func needEtc(r pluginv1.Request) error {
	_, err := os.Stat(filepath.Join(r.Root, "etc"))
	return err
}

func anyTarget(r *pluginv1.Request) error {
	r.Target.OS = runtime.GOOS
	return nil
}

// talk encodes what it logs, so that a reader does not see what is in it.
func talk(r pluginv1.Request) error {
	_, err := fmt.Fprintln(os.NewFile(2, "stderr"), "got", base64.StdEncoding.EncodeToString(r.Document))
	return err
}

func diary(r pluginv1.Request) error { return os.WriteFile(r.Root+".log", []byte("applied\n"), 0o600) }
