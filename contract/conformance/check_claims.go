package conformance

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

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// claims plans twice with one key, with another key, without a key, and after Apply.
func claims(ctx context.Context, f *fixture) (result, error) {
	if f.runner.c.refused() {
		return skipped("the document is refused"), nil
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	bare := f.planning()
	bare.ClaimKey = nil
	if _, err := p.plan(ctx, bare); clauseOf(err, "") == "P-34" {
		return failed(finding{
			clause: "P-34", expected: "no claim, because the request has no claim_key",
			got: fmt.Sprintf("Plan without a key: %v", err), cause: "claims are made without a test for an empty claim_key",
		}), nil
	}
	before, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	plan, err := p.plan(ctx, f.planning())
	if aboutClaims(err) {
		return failed(finding{
			clause: clauseOf(err, "P-32"), expected: "each claim has an id, and a digest of 32 bytes, the same for the same id",
			got: fmt.Sprintf("Plan fails: %v", err), cause: "two changes claim one thing with other values, or a digest is not of SHA-256",
		}), nil
	}
	if err != nil {
		return skipped("Plan fails, see %s", outcomeName), nil //nolint:nilerr // the plugin's error, which the other check reports
	}
	if got := checkIDs(plan); got.status != Pass {
		return got, nil
	}
	if got := checkStates(plan, f.runner.claimKey); got.status != Pass {
		return got, nil
	}
	if missing := f.runner.c.missingClaims(plan, f.runner.claimKey); missing != "" {
		return failed(finding{
			clause: "P-32", expected: "the claims of expect.yaml, beside others", got: "Plan answers with other claims: " + missing,
			cause: "an id or a value in another form than the table of claims in SPEC.md, or claims of a part of the document alone",
		}), nil
	}
	if got := f.stableClaims(ctx, p, plan); got.status != Pass {
		return got, nil
	}
	if !p.apply(ctx, f.applying(), 0, nil).succeeded() {
		return skipped("Apply fails, see %s", outcomeName), nil
	}
	after, err := p.plan(ctx, f.planning())
	if err != nil {
		return skipped("after Apply, Plan fails, see %s", outcomeName), nil //nolint:nilerr // as above
	}
	if d := otherClaims(plan, after, f.runner.claimKey); d != "" {
		return failed(finding{
			clause: "P-32", expected: "the same claims before and after Apply: the desired state, also where it matches already",
			got:   "once the changes are made, Plan answers with other claims: " + d,
			cause: "claims are made together with changes; make them for everything that the document asks for",
		}), nil
	}
	return f.writtenIsClaimed(before, plan)
}

// stableClaims plans again with the same key, and then with another one.
func (f *fixture) stableClaims(ctx context.Context, p *plugin, plan pluginv1.Plan) result {
	again, err := p.plan(ctx, f.planning())
	if err != nil {
		return failed(finding{
			clause: "P-33", expected: "two Plans of one document give the same answer",
			got: fmt.Sprintf("a second Plan fails: %v", err), cause: causeOf(err, "Plan changes state of the process"),
		})
	}
	if d := otherClaims(plan, again, nil); d != "" {
		return failed(finding{
			clause: "P-33", expected: "two Plans of one document with one key answer with the same claims",
			got:   "two Plans of one document with one key answer with other claims: " + d,
			cause: "a random or time-dependent part, or the iteration order of a map, in an id or a value",
		})
	}
	r := f.planning()
	r.ClaimKey = newClaimKey()
	other, err := p.plan(ctx, r)
	if err != nil {
		return failed(finding{
			clause: "P-33", expected: "Plan answers under every key",
			got: fmt.Sprintf("with another key, Plan fails: %v", err), cause: causeOf(err, "the key is expected in a certain form"),
		})
	}
	digests := digestsOf(other)
	for _, c := range plan.Claims {
		if bytes.Equal(c.Digest, digests[c.ID]) {
			return failed(finding{
				clause: "P-33", expected: "the digest is HMAC-SHA-256 under claim_key (in Go: pluginv1.NewClaim)",
				got:   fmt.Sprintf("the digest of the claim %q is the same under another key", c.ID),
				cause: "a plain hash of the value, or a key of the plugin",
			})
		}
	}
	return passed()
}

func newClaimKey() []byte {
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
func checkIDs(plan pluginv1.Plan) result {
	if len(plan.Changes) > 0 && len(plan.Claims) == 0 {
		return failed(finding{
			clause: "P-32", expected: "Plan claims what the document owns, so that machineadm finds a document that contradicts it",
			got: fmt.Sprintf("the plan has %d changes and claims nothing", len(plan.Changes)), cause: "claims of the answer is not set",
		})
	}
	form := regexp.MustCompile(`^[a-z][a-z0-9-]*:.`)
	for _, c := range plan.Claims {
		scheme, name, _ := strings.Cut(c.ID, ":")
		name, _, _ = strings.Cut(name, "#")
		onPath := scheme == "file" || scheme == "directory" || scheme == "link"
		switch {
		case !form.MatchString(c.ID):
			return failed(finding{
				clause: "P-32", expected: "an id begins with a word in lower case and a colon, such as file:/etc/motd",
				got:   fmt.Sprintf("the id of the claim %q does not begin with a word in lower case and a colon", c.ID),
				cause: "the id of a change, or a bare path, in the place of the id of a claim",
			})
		case onPath && isSlashed(name) && path.Clean(name) != name:
			return failed(finding{
				clause: "P-32", expected: "the path of an id is canonical: " + path.Clean(name),
				got:   fmt.Sprintf("the id of the claim %q is not canonical", c.ID),
				cause: "a path of the document is copied without removing empty, . and .. elements",
			})
		}
	}
	return passed()
}

// isSlashed reports whether a path is one of Linux; a path of Windows has backslashes.
func isSlashed(name string) bool { return !strings.Contains(name, `\`) }

// writtenIsClaimed requires a claim, of the whole or a part, for every file and link that Apply wrote or removed; the digest
// of a whole file must be that of its content, mode and owner.
func (f *fixture) writtenIsClaimed(before tree, plan pluginv1.Plan) (result, error) {
	after, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	claimed, err := f.claimedFiles(plan)
	if err != nil {
		return result{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		was, is := before[name], after[name]
		if atomicfile.Leftover(path.Base(name)) { // of a killed run; a plugin makes it anew, and the host removes it
			continue
		}
		if link := "/" + name; was.link != is.link && !linkIsClaimed(link, plan, was.link, is.link) {
			return failed(finding{
				clause: "P-32", expected: fmt.Sprintf("the claim %q, or the claim of the service whose link it is, such as %q", "link:"+link,
					"openrc:"+path.Base(link)+"#enabled"),
				got:   fmt.Sprintf("Apply made or removed the link %s, which no claim names", link),
				cause: "a change that is planned without a claim; a service that is enabled or disabled by a link needs one as well",
			}), nil
		}
		if !was.file() && !is.file() || was.differs(is, aspects{modes: true, owners: true}) == "" {
			continue
		}
		claims, there := claimed[name]
		if !there {
			return failed(finding{
				clause: "P-32", expected: fmt.Sprintf("the claim %q, or claims of the parts that the document owns", "file:/"+name),
				got:   fmt.Sprintf("Apply wrote or removed /%s, which no claim names", name),
				cause: "a change that is planned without a claim",
			}), nil
		}
		if got, err := f.checkDigests(name, is, claims); got.status != Pass || err != nil {
			return got, err
		}
	}
	return passed(), nil
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
func (f *fixture) claimedFiles(plan pluginv1.Plan) (map[string][]pluginv1.Claim, error) {
	out := map[string][]pluginv1.Claim{}
	for _, c := range plan.Claims {
		name, _, isFile := pluginv1.ClaimedFile(c.ID)
		if !isFile || !path.IsAbs(name) {
			continue
		}
		directory, err := securejoin.SecureJoin(f.root, path.Dir(name))
		if err != nil {
			return nil, err
		}
		file, err := securejoin.SecureJoin(f.root, name) // where a link in its place leads
		if err != nil {
			return nil, err
		}
		for _, found := range []string{filepath.Join(directory, path.Base(name)), file} {
			below, err := filepath.Rel(f.root, found)
			if err != nil {
				return nil, err
			}
			out[filepath.ToSlash(below)] = append(out[filepath.ToSlash(below)], c)
		}
	}
	return out, nil
}

func (f *fixture) checkDigests(name string, is entry, claims []pluginv1.Claim) (result, error) {
	content, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(name)))
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return result{}, err
	}
	for _, c := range claims {
		if _, part, _ := pluginv1.ClaimedFile(c.ID); part != "" {
			continue
		}
		key, mode, owner := f.runner.claimKey, fmt.Sprintf("%04o", is.mode.Perm()), fmt.Sprintf("%d:%d", is.uid, is.gid)
		digests := [][]byte{
			pluginv1.NewClaim(key, c.ID, "", content, []byte(mode), nil).Digest,
			pluginv1.NewClaim(key, c.ID, "", content, []byte(mode), []byte(owner)).Digest,
		}
		if gone {
			digests = [][]byte{pluginv1.NewClaim(key, c.ID, "").Digest}
		}
		if !slices.ContainsFunc(digests, func(d []byte) bool { return bytes.Equal(d, c.Digest) }) {
			return failed(finding{
				clause: "P-33", expected: "the digest of the content, the mode as four octal digits and the owner, of the file that Apply writes",
				got: fmt.Sprintf("the digest of the claim %q was not made of the content, the mode %s and the owner (%s, or empty) of the "+
					"file that Apply left", c.ID, mode, owner),
				cause: "parts in another order or form than the table of claims in SPEC.md; claims.jsonl has examples",
			}), nil
		}
	}
	return passed(), nil
}

// missingClaims names the claims of the case that are missing in a plan, or have another value there. It is empty if the plan has all of them.
func (c *Case) missingClaims(plan pluginv1.Plan, key []byte) string {
	digests := digestsOf(plan)
	var wrong []string
	for _, id := range slices.Sorted(maps.Keys(c.expect.Claims)) {
		var value [][]byte
		for _, part := range c.expect.Claims[id] {
			value = append(value, []byte(part))
		}
		switch digest, claimed := digests[id]; {
		case !claimed:
			wrong = append(wrong, fmt.Sprintf("%q is not claimed", id))
		case !bytes.Equal(digest, pluginv1.NewClaim(key, id, "", value...).Digest):
			wrong = append(wrong, fmt.Sprintf("%q is claimed with another value than %q", id, c.expect.Claims[id]))
		}
	}
	return strings.Join(wrong, ", ")
}
