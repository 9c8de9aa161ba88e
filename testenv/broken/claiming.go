package main

import (
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

func noSecretFields(d *pluginv1.Description) {
	for i := range d.Kinds {
		d.Kinds[i].SecretFields = nil
	}
}

func vague(d *pluginv1.Description) {
	for i := range d.Kinds {
		d.Kinds[i].Provides = []string{"packages"}
	}
}

func everywhere(d *pluginv1.Description) { d.Distributions = []string{"debian", "Debian GNU/Linux"} }

func schemaUnasked(request, response any, err error) (any, error) {
	asked, _ := request.(*pb.DescribeRequest)
	if d, ok := response.(*pb.DescribeResponse); ok && !asked.GetJsonSchema() {
		for _, k := range d.GetKinds() {
			k.JsonSchema = []byte("{}")
		}
	}
	return response, err
}

func summaryless(p *pluginv1.Plan) {
	for i := range p.Changes {
		p.Changes[i].Summary = ""
	}
}

// detailless loses the details of one status.
func detailless(_, response any, err error) (any, error) {
	if s := status.Convert(err); s.Code() == codes.FailedPrecondition {
		err = status.Error(s.Code(), s.Message())
	}
	return response, err
}

func unclaiming(p *pluginv1.Plan) { p.Claims = nil }

func halfClaiming(p *pluginv1.Plan) {
	p.Claims = slices.DeleteFunc(p.Claims, func(c pluginv1.Claim) bool { return strings.HasSuffix(c.ID, "/farewell") })
}

func unclaimedLink(p *pluginv1.Plan) {
	p.Claims = slices.DeleteFunc(p.Claims, func(c pluginv1.Claim) bool { return strings.HasPrefix(c.ID, "link:") })
}

// forgetful claims what is missing alone.
func forgetful(p *pluginv1.Plan) {
	p.Claims = slices.DeleteFunc(p.Claims, func(c pluginv1.Claim) bool {
		return !slices.ContainsFunc(p.Changes, func(change pluginv1.Change) bool { return change.ID == c.ID })
	})
}

func unkeyed(p *pluginv1.Plan) {
	for i, c := range p.Claims {
		digest := sha256.Sum256([]byte(c.ID))
		p.Claims[i].Digest = digest[:]
	}
}

func randomDigests(p *pluginv1.Plan) {
	for i := range p.Claims {
		p.Claims[i].Digest = make([]byte, sha256.Size)
		_, _ = rand.Read(p.Claims[i].Digest) // never fails
	}
}

// ownDigest is stable and keyed, and made of something else than the contract says.
func ownDigest(key []byte, c *pluginv1.Claim) {
	*c = pluginv1.NewClaim(key, c.ID, c.Field, []byte(c.ID))
}

// affirmative writes yes where the table of claims has true.
func affirmative(key []byte, c *pluginv1.Claim) {
	*c = pluginv1.NewClaim(key, "unit:app.service#enabled", c.Field, []byte("yes"))
}

func sloppy(p *pluginv1.Plan) {
	for i, c := range p.Claims {
		p.Claims[i].ID = strings.Replace(c.ID, "/etc/", "/etc//", 1)
	}
}

func contradictory(_, response any, err error) (any, error) {
	if p, ok := response.(*pb.PlanResponse); ok && len(p.GetClaims()) > 0 {
		p.Claims = append(p.Claims, &pb.Claim{Id: p.GetClaims()[0].GetId(), Digest: make([]byte, sha256.Size)})
	}
	return response, err
}

// claimsUnasked sends claims when there is no key for their digests.
func claimsUnasked(request, response any, err error) (any, error) {
	asked, _ := request.(*pb.PlanRequest)
	if p, ok := response.(*pb.PlanResponse); ok && len(asked.GetClaimKey()) == 0 {
		p.Claims = []*pb.Claim{{Id: "file:/etc/app/greeting", Digest: make([]byte, sha256.Size)}}
	}
	return response, err
}

// listsOtherFiles lists files with another content than Apply writes.
func listsOtherFiles(p *pluginv1.Plan) {
	for i := range p.Files {
		p.Files[i].Content = append(p.Files[i].Content, '!')
	}
}

// listsTooLittle lists a change whose files it does not list.
func listsTooLittle(p *pluginv1.Plan) { p.Files = nil }

// blind ignores what earlier documents leave.
func blind(r *pluginv1.Request) error {
	r.Files = nil
	return nil
}
