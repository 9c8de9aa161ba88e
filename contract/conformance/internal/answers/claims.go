package answers

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// Claims plans twice with one key, with another key, without a key, and after Apply.
func Claims(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	if f.Runner.Case.Refused() {
		return rig.Skipped("the document is refused"), nil
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	bare := f.Planning()
	bare.ClaimKey = nil
	if _, err := p.CallPlan(ctx, bare); process.ClauseOf(err, "") == "P-34" {
		return rig.Failed(rig.Finding{
			Clause: "P-34", Expected: "no claim, because the request has no claim_key",
			Got: fmt.Sprintf("Plan without a key: %v", err), Cause: "claims are made without a test for an empty claim_key",
		}), nil
	}
	before, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	plan, err := p.CallPlan(ctx, f.Planning())
	if process.AboutClaims(err) {
		return rig.Failed(rig.Finding{
			Clause: process.ClauseOf(err, "P-32"), Expected: "each claim has an id, and a digest of 32 bytes, the same for the same id",
			Got: fmt.Sprintf("Plan fails: %v", err), Cause: "two changes claim one thing with other values, or a digest is not of SHA-256",
		}), nil
	}
	if err != nil {
		return rig.Skipped("Plan fails, see %s", rig.OutcomeName), nil //nolint:nilerr // the plugin's error, which the other check reports
	}
	if got := checkIDs(plan); got.Status != rig.Pass {
		return got, nil
	}
	if got := checkStates(plan, f.Runner.ClaimKey); got.Status != rig.Pass {
		return got, nil
	}
	if missing := missingClaims(f.Runner.Case, plan, f.Runner.ClaimKey); missing != "" {
		return rig.Failed(rig.Finding{
			Clause: "P-32", Expected: "the claims of expect.yaml, beside others", Got: "Plan answers with other claims: " + missing,
			Cause: "an id or a value in another form than the table of claims in SPEC.md, or claims of a part of the document alone",
		}), nil
	}
	if got := stableClaims(ctx, f, p, plan); got.Status != rig.Pass {
		return got, nil
	}
	if !p.CallApply(ctx, f.Applying(), 0, nil).Succeeded() {
		return rig.Skipped("Apply fails, see %s", rig.OutcomeName), nil
	}
	after, err := p.CallPlan(ctx, f.Planning())
	if err != nil {
		return rig.Skipped("after Apply, Plan fails, see %s", rig.OutcomeName), nil //nolint:nilerr // as above
	}
	if d := otherClaims(plan, after, f.Runner.ClaimKey); d != "" {
		return rig.Failed(rig.Finding{
			Clause: "P-32", Expected: "the same claims before and after Apply: the desired state, also where it matches already",
			Got:   "once the changes are made, Plan answers with other claims: " + d,
			Cause: "claims are made together with changes; make them for everything that the document asks for",
		}), nil
	}
	return writtenIsClaimed(f, before, plan)
}

// stableClaims plans again with the same key, and then with another one.
func stableClaims(ctx context.Context, f *rig.Fixture, p *process.Plugin, plan pluginv1.Plan) rig.Result {
	again, err := p.CallPlan(ctx, f.Planning())
	if err != nil {
		return rig.Failed(rig.Finding{
			Clause: "P-33", Expected: "two Plans of one document give the same answer",
			Got: fmt.Sprintf("a second Plan fails: %v", err), Cause: process.CauseOf(err, "Plan changes state of the process"),
		})
	}
	if d := otherClaims(plan, again, nil); d != "" {
		return rig.Failed(rig.Finding{
			Clause: "P-33", Expected: "two Plans of one document with one key answer with the same claims",
			Got:   "two Plans of one document with one key answer with other claims: " + d,
			Cause: "a random or time-dependent part, or the iteration order of a map, in an id or a value",
		})
	}
	r := f.Planning()
	r.ClaimKey = NewClaimKey()
	other, err := p.CallPlan(ctx, r)
	if err != nil {
		return rig.Failed(rig.Finding{
			Clause: "P-33", Expected: "Plan answers under every key",
			Got: fmt.Sprintf("with another key, Plan fails: %v", err), Cause: process.CauseOf(err, "the key is expected in a certain form"),
		})
	}
	digests := digestsOf(other)
	for _, c := range plan.Claims {
		if bytes.Equal(c.Digest, digests[c.ID]) {
			return rig.Failed(rig.Finding{
				Clause: "P-33", Expected: "the digest is HMAC-SHA-256 under claim_key (in Go: pluginv1.NewClaim)",
				Got:   fmt.Sprintf("the digest of the claim %q is the same under another key", c.ID),
				Cause: "a plain hash of the value, or a key of the plugin",
			})
		}
	}
	return rig.Passed()
}

// NewClaimKey returns 32 random bytes, the key of the digests that claims have.
func NewClaimKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}

func digestsOf(p pluginv1.Plan) map[string][]byte {
	out := map[string][]byte{}
	for _, c := range p.Claims {
		out[c.ID] = c.Digest
	}
	return out
}

// otherClaims returns a difference between the claims of two plans, or "". With a key, the claim of an absent thing may be
// missing in got: what an earlier state of the document left is claimed only while it exists.
func otherClaims(want, got pluginv1.Plan, key []byte) string {
	w, g := digestsOf(want), digestsOf(got)
	for _, id := range slices.Sorted(maps.Keys(w)) {
		switch digest, claimed := g[id]; {
		case !claimed && key != nil && bytes.Equal(w[id], pluginv1.NewClaim(key, id, "").Digest):
		case !claimed:
			return fmt.Sprintf("%q is not claimed any more", id)
		case !bytes.Equal(w[id], digest):
			return fmt.Sprintf("%q has another digest", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g)) {
		if _, claimed := w[id]; !claimed {
			return fmt.Sprintf("%q was not claimed before", id)
		}
	}
	return ""
}

// checkIDs requires canonical ids, and claims in a plan with changes.
func checkIDs(plan pluginv1.Plan) rig.Result {
	if len(plan.Changes) > 0 && len(plan.Claims) == 0 {
		return rig.Failed(rig.Finding{
			Clause: "P-32", Expected: "Plan claims what the document owns, so that machineadm finds a document that contradicts it",
			Got: fmt.Sprintf("the plan has %d changes and claims nothing", len(plan.Changes)), Cause: "claims of the answer is not set",
		})
	}
	form := regexp.MustCompile(`^[a-z][a-z0-9-]*:.`)
	for _, c := range plan.Claims {
		scheme, name, _ := strings.Cut(c.ID, ":")
		name, _, _ = strings.Cut(name, "#")
		onPath := scheme == "file" || scheme == "directory" || scheme == "link"
		switch {
		case !form.MatchString(c.ID):
			return rig.Failed(rig.Finding{
				Clause: "P-32", Expected: "an id begins with a word in lower case and a colon, such as file:/etc/motd",
				Got:   fmt.Sprintf("the id of the claim %q does not begin with a word in lower case and a colon", c.ID),
				Cause: "the id of a change, or a bare path, in the place of the id of a claim",
			})
		case onPath && isSlashed(name) && path.Clean(name) != name:
			return rig.Failed(rig.Finding{
				Clause: "P-32", Expected: "the path of an id is canonical: " + path.Clean(name),
				Got:   fmt.Sprintf("the id of the claim %q is not canonical", c.ID),
				Cause: "a path of the document is copied without removing empty, . and .. elements",
			})
		}
	}
	return rig.Passed()
}

// isSlashed reports whether a path is one of Linux; a path of Windows has backslashes.
func isSlashed(name string) bool { return !strings.Contains(name, `\`) }

// writtenIsClaimed requires a claim, of the whole or a part, for every file and link that Apply wrote or removed; the digest
// of a whole file must be that of its content, mode and owner.
func writtenIsClaimed(f *rig.Fixture, before trees.Tree, plan pluginv1.Plan) (rig.Result, error) {
	after, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	claimed, err := claimedFiles(f, plan)
	if err != nil {
		return rig.Result{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(trees.Union(before, after))) {
		was, is := before[name], after[name]
		if atomicfile.Leftover(path.Base(name)) { // of a killed run; a plugin makes it anew, and the host removes it
			continue
		}
		if link := "/" + name; was.Link != is.Link && !linkIsClaimed(link, plan, was.Link, is.Link) {
			return rig.Failed(rig.Finding{
				Clause: "P-32", Expected: fmt.Sprintf("the claim %q, or the claim of the service whose link it is, such as %q", "link:"+link,
					"openrc:"+path.Base(link)+"#enabled"),
				Got:   fmt.Sprintf("Apply made or removed the link %s, which no claim names", link),
				Cause: "a change that is planned without a claim; a service that is enabled or disabled by a link needs one as well",
			}), nil
		}
		if !was.File() && !is.File() || was.Differs(is, trees.Aspects{Modes: true, Owners: true}) == "" {
			continue
		}
		claims, there := claimed[name]
		if !there {
			return rig.Failed(rig.Finding{
				Clause: "P-32", Expected: fmt.Sprintf("the claim %q, or claims of the parts that the document owns", "file:/"+name),
				Got:   fmt.Sprintf("Apply wrote or removed /%s, which no claim names", name),
				Cause: "a change that is planned without a claim",
			}), nil
		}
		if got, err := checkDigests(f, name, is, claims); got.Status != rig.Pass || err != nil {
			return got, err
		}
	}
	return rig.Passed(), nil
}

// linkIsClaimed reports whether a claim names a link or the state of a service whose link it is: one that has the name of the
// service, as in a directory of what starts at boot, or that leads to it, as another name of it does.
func linkIsClaimed(link string, plan pluginv1.Plan, targets ...string) bool {
	return slices.ContainsFunc(plan.Claims, func(c pluginv1.Claim) bool {
		if _, name, hasPath := pluginv1.ClaimedPath(c.ID); hasPath {
			return name == link
		}
		_, service, _ := strings.Cut(c.ID, ":")
		service, _, state := strings.Cut(service, "#")
		return state && slices.ContainsFunc(append(targets, link), func(name string) bool { return path.Base(name) == service })
	})
}

// claimedFiles maps the names of files below the root to the claims of them; links are followed inside it.
func claimedFiles(f *rig.Fixture, plan pluginv1.Plan) (map[string][]pluginv1.Claim, error) {
	out := map[string][]pluginv1.Claim{}
	for _, c := range plan.Claims {
		name, _, isFile := pluginv1.ClaimedFile(c.ID)
		if !isFile || !path.IsAbs(name) {
			continue
		}
		directory, err := securejoin.SecureJoin(f.Root, path.Dir(name))
		if err != nil {
			return nil, err
		}
		file, err := securejoin.SecureJoin(f.Root, name) // where a link in its place leads
		if err != nil {
			return nil, err
		}
		for _, found := range []string{filepath.Join(directory, path.Base(name)), file} {
			below, err := filepath.Rel(f.Root, found)
			if err != nil {
				return nil, err
			}
			out[filepath.ToSlash(below)] = append(out[filepath.ToSlash(below)], c)
		}
	}
	return out, nil
}

func checkDigests(f *rig.Fixture, name string, is trees.Entry, claims []pluginv1.Claim) (rig.Result, error) {
	content, err := os.ReadFile(filepath.Join(f.Root, filepath.FromSlash(name)))
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return rig.Result{}, err
	}
	for _, c := range claims {
		if _, part, _ := pluginv1.ClaimedFile(c.ID); part != "" {
			continue
		}
		key, mode, owner := f.Runner.ClaimKey, fmt.Sprintf("%04o", is.Mode.Perm()), fmt.Sprintf("%d:%d", is.UID, is.GID)
		digests := [][]byte{
			pluginv1.NewClaim(key, c.ID, "", content, []byte(mode), nil).Digest,
			pluginv1.NewClaim(key, c.ID, "", content, []byte(mode), []byte(owner)).Digest,
		}
		if gone {
			digests = [][]byte{pluginv1.NewClaim(key, c.ID, "").Digest}
		}
		if !slices.ContainsFunc(digests, func(d []byte) bool { return bytes.Equal(d, c.Digest) }) {
			return rig.Failed(rig.Finding{
				Clause: "P-33", Expected: "the digest of the content, the mode as four octal digits and the owner, of the file that Apply writes",
				Got: fmt.Sprintf("the digest of the claim %q was not made of the content, the mode %s and the owner (%s, or empty) of the "+
					"file that Apply left", c.ID, mode, owner),
				Cause: "parts in another order or form than the table of claims in SPEC.md; claims.jsonl has examples",
			}), nil
		}
	}
	return rig.Passed(), nil
}

// missingClaims names the claims of the case that are missing in a plan, or have another value there. It is empty if the plan has all of them.
func missingClaims(c *testcase.Case, plan pluginv1.Plan, key []byte) string {
	digests := digestsOf(plan)
	var wrong []string
	for _, id := range slices.Sorted(maps.Keys(c.Expect.Claims)) {
		var value [][]byte
		for _, part := range c.Expect.Claims[id] {
			value = append(value, []byte(part))
		}
		switch digest, claimed := digests[id]; {
		case !claimed:
			wrong = append(wrong, fmt.Sprintf("%q is not claimed", id))
		case !bytes.Equal(digest, pluginv1.NewClaim(key, id, "", value...).Digest):
			wrong = append(wrong, fmt.Sprintf("%q is claimed with another value than %q", id, c.Expect.Claims[id]))
		}
	}
	return strings.Join(wrong, ", ")
}
