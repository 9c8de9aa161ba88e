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
)

// claims plans with one key twice, with another one, and with none, and after Apply once more.
func claims(ctx context.Context, b *bench) (finding, error) {
	if b.trial.c.refused() {
		return skipped("the document is refused"), nil
	}
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	bare := b.planning()
	bare.ClaimKey = nil
	if _, err := p.plan(ctx, bare); clauseOf(err, "") == "P-34" {
		return failed("Plan without a key: %v", err).of("P-34"), nil
	}
	before, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	plan, err := p.plan(ctx, b.planning())
	if aboutClaims(err) {
		return failed("Plan fails: %v", err).of(clauseOf(err, "P-32")), nil
	}
	if trouble(err) != "" {
		return skipped("Plan fails, see %s", outcomeName), nil
	}
	if f := canonical(plan); f.verdict != Pass {
		return f, nil
	}
	if f := b.stableClaims(ctx, p, plan); f.verdict != Pass {
		return f, nil
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	if trouble(run.failure()) != "" {
		return skipped("Apply fails, see %s", outcomeName), nil
	}
	after, err := p.plan(ctx, b.planning())
	if trouble(err) != "" {
		return skipped("after Apply, Plan fails, see %s", outcomeName), nil
	}
	if d := otherClaims(plan, after, b.trial.claimKey); d != "" {
		return failed("once the changes are made, Plan answers with other claims: %s\nclaim what the document asks for, whether it is "+
			"there or not", d).of("P-32"), nil
	}
	return b.writtenIsClaimed(before, plan)
}

// stableClaims plans again with the same key, and then with another one.
func (b *bench) stableClaims(ctx context.Context, p *plugin, plan pluginv1.Plan) finding {
	again, err := p.plan(ctx, b.planning())
	if err != nil {
		return failed("a second Plan fails: %v", err).of("P-33")
	}
	if d := otherClaims(plan, again, nil); d != "" {
		return failed("two Plans of one document with one key answer with other claims: %s", d).of("P-33")
	}
	r := b.planning()
	r.ClaimKey = newClaimKey()
	other, err := p.plan(ctx, r)
	if err != nil {
		return failed("with another key, Plan fails: %v", err).of("P-33")
	}
	digests := digestsOf(other)
	for _, c := range plan.Claims {
		if bytes.Equal(c.Digest, digests[c.ID]) {
			return failed("the digest of the claim %q is the same under another key: make it by HMAC-SHA-256 under claim_key "+
				"(in Go: pluginv1.NewClaim)", c.ID).of("P-33")
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

// otherClaims says in what the claims of two plans differ; "" for nothing. With a key, a thing that has to be absent need
// not be claimed any more: what an earlier state of the document left is known only while it is there.
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

// canonical judges the ids of claims, and that a plan with changes has some.
func canonical(plan pluginv1.Plan) finding {
	if len(plan.Changes) > 0 && len(plan.Claims) == 0 {
		return failed("the plan has %d changes and claims nothing: claim what the document owns, so that the host finds another "+
			"document that contradicts it", len(plan.Changes)).of("P-32")
	}
	form := regexp.MustCompile(`^[a-z][a-z0-9-]*:.`)
	for _, c := range plan.Claims {
		scheme, name, _ := strings.Cut(c.ID, ":")
		name, _, _ = strings.Cut(name, "#")
		onPath := scheme == "file" || scheme == "directory"
		switch {
		case !form.MatchString(c.ID):
			return failed("the id of the claim %q does not begin with a word in small letters and a colon", c.ID).of("P-32")
		case onPath && isSlashed(name) && path.Clean(name) != name:
			return failed("the id of the claim %q is not canonical: its path is %s", c.ID, path.Clean(name)).of("P-32")
		}
	}
	return passed()
}

// isSlashed says whether a path is one of Linux; those of Windows have backslashes.
func isSlashed(name string) bool { return !strings.Contains(name, `\`) }

// writtenIsClaimed looks at every file that Apply wrote or removed: it must be claimed, whole or in part, and the digest of a
// whole file must be that of its content, mode and owner.
func (b *bench) writtenIsClaimed(before tree, plan pluginv1.Plan) (finding, error) {
	after, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	claimed, err := b.claimedFiles(plan)
	if err != nil {
		return finding{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(union(before, after))) {
		was, is := before[name], after[name]
		if !was.file() && !is.file() || was.differs(is, aspects{modes: true, owners: true}) == "" {
			continue
		}
		claims, there := claimed[name]
		if !there {
			return failed("Apply wrote or removed /%s, which no claim names: claim %q, or the parts of it that the document owns",
				name, "file:/"+name).of("P-32"), nil
		}
		if f, err := b.judgeDigests(name, is, claims); f.verdict != Pass || err != nil {
			return f, err
		}
	}
	return passed(), nil
}

// claimedFiles maps the names of files below the root to the claims of them; links are followed inside it.
func (b *bench) claimedFiles(plan pluginv1.Plan) (map[string][]pluginv1.Claim, error) {
	out := map[string][]pluginv1.Claim{}
	for _, c := range plan.Claims {
		name, _, isFile := pluginv1.ClaimedFile(c.ID)
		if !isFile || !path.IsAbs(name) {
			continue
		}
		directory, err := securejoin.SecureJoin(b.root, path.Dir(name))
		if err != nil {
			return nil, err
		}
		file, err := securejoin.SecureJoin(b.root, name) // where a link in its place leads
		if err != nil {
			return nil, err
		}
		for _, found := range []string{filepath.Join(directory, path.Base(name)), file} {
			below, err := filepath.Rel(b.root, found)
			if err != nil {
				return nil, err
			}
			out[filepath.ToSlash(below)] = append(out[filepath.ToSlash(below)], c)
		}
	}
	return out, nil
}

func (b *bench) judgeDigests(name string, is entry, claims []pluginv1.Claim) (finding, error) {
	content, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
	gone := errors.Is(err, fs.ErrNotExist)
	if err != nil && !gone {
		return finding{}, err
	}
	for _, c := range claims {
		if _, part, _ := pluginv1.ClaimedFile(c.ID); part != "" {
			continue
		}
		key, mode, owner := b.trial.claimKey, fmt.Sprintf("%04o", is.mode.Perm()), fmt.Sprintf("%d:%d", is.uid, is.gid)
		digests := [][]byte{
			pluginv1.NewClaim(key, c.ID, "", content, []byte(mode), nil).Digest,
			pluginv1.NewClaim(key, c.ID, "", content, []byte(mode), []byte(owner)).Digest,
		}
		if gone {
			digests = [][]byte{pluginv1.NewClaim(key, c.ID, "").Digest}
		}
		if !slices.ContainsFunc(digests, func(d []byte) bool { return bytes.Equal(d, c.Digest) }) {
			return failed("the digest of the claim %q is not that of the content, the mode %s and the owner (%s, or empty) of the file that "+
				"Apply left: other plugins that claim it would contradict this one for nothing", c.ID, mode, owner).of("P-33"), nil
		}
	}
	return passed(), nil
}
