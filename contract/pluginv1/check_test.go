package pluginv1_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// scripted is a plugin that answers what a test gives it.
type scripted struct {
	raw
	description *pb.DescribeResponse
	answer      *pb.PlanResponse
	trailer     metadata.MD
}

func (s *scripted) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return s.description, nil
}

func (s *scripted) Plan(ctx context.Context, _ *pb.PlanRequest) (*pb.PlanResponse, error) {
	if s.trailer != nil {
		if err := grpc.SetTrailer(ctx, s.trailer); err != nil {
			return nil, err
		}
	}
	return s.answer, s.plan
}

func serveScripted(t *testing.T, s *scripted) *pluginv1.Client {
	t.Helper()
	return serve(t, func(registrar grpc.ServiceRegistrar) {
		pb.RegisterPluginServer(registrar, s)
		pb.RegisterConfiguratorServer(registrar, s)
	})
}

// requireBreach checks an error of the plugin that names the clause.
func requireBreach(t *testing.T, err error, clause, says string) {
	t.Helper()
	var e *pluginv1.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, pluginv1.CodeInternal, e.Code)
	assert.Equal(t, clause, e.Clause)
	assert.Contains(t, e.Message, "the plugin breaks the contract ("+clause+"): ")
	assert.Contains(t, e.Message, says)
	assert.LessOrEqual(t, len(e.Message), 2*pluginv1.MaxTextBytes)
}

func statusOf(code codes.Code, details ...*anypb.Any) error {
	s := status.New(code, "a foreign text").Proto()
	s.Details = details
	return status.ErrorProto(s)
}

// TestStatusWithAWrongDetail: what is wrong with the status of an error is said, whatever its code.
func TestStatusWithAWrongDetail(t *testing.T) {
	t.Parallel()
	const url = "type.googleapis.com/machineadm.plugin.v1.ErrorDetail"
	good, err := proto.Marshal(&pb.ErrorDetail{Message: "not ready", Code: pb.Code_CODE_PRECONDITION})
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		err          error
		trailer      string
		clause, says string
	}{
		"absent":        {err: status.Error(codes.FailedPrecondition, "x"), clause: "E-1", says: "Plan answered the status FailedPrecondition without an ErrorDetail"},
		"unimplemented": {err: status.Error(codes.Unimplemented, "x"), clause: "P-1, E-1", says: "either the plugin does not serve this call, or an error of it lacks the detail"},
		"undecodable": {
			err:    statusOf(codes.Unimplemented, &anypb.Any{TypeUrl: url, Value: []byte{0xff}}),
			clause: "E-2", says: "the status Unimplemented with an ErrorDetail that cannot be decoded",
		},
		"another type": {
			err:    statusOf(codes.Unavailable, &anypb.Any{TypeUrl: "type.googleapis.com/my.ErrorDetail", Value: good}),
			clause: "E-2", says: `of the type URL "type.googleapis.com/my.ErrorDetail" instead of "` + url + `"`,
		},
		"no status in the trailer": {
			err: status.Error(codes.Unimplemented, "x"), trailer: "\xff\xff", clause: "E-2", says: "a trailer grpc-status-details-bin that cannot be decoded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{raw: raw{plan: tt.err}}
			if tt.trailer != "" {
				s.trailer = metadata.Pairs("grpc-status-details-bin", tt.trailer)
			}
			_, err := serveScripted(t, s).Plan(t.Context(), pluginv1.Request{})
			requireBreach(t, err, tt.clause, tt.says)
		})
	}
	t.Run("another code in the trailer", func(t *testing.T) {
		t.Parallel()
		other, err := proto.Marshal(status.New(codes.Aborted, "").Proto())
		require.NoError(t, err)
		_, err = serveScripted(t, &scripted{
			raw: raw{plan: status.Error(codes.Unknown, "x")}, trailer: metadata.Pairs("grpc-status-details-bin", string(other)),
		}).Plan(t.Context(), pluginv1.Request{})
		requireBreach(t, err, "E-2", "have different codes")
	})
}

func change(id string) *pb.Change { return &pb.Change{Id: id, Summary: "do " + id} }

// TestClaimsThatWereNotAskedFor: a plugin that has no key makes digests that can be searched for.
func TestClaimsThatWereNotAskedFor(t *testing.T) {
	t.Parallel()
	claims := []*pb.Claim{{Id: "file:/a", Digest: make([]byte, 32)}}
	_, err := serveScripted(t, &scripted{answer: &pb.PlanResponse{Claims: claims}}).Plan(t.Context(), pluginv1.Request{})
	requireBreach(t, err, "P-34", "has no key")
	packed, err := anypb.New(&pb.ErrorDetail{Code: pb.Code_CODE_RETRY, Message: "x", Claims: claims})
	require.NoError(t, err)
	_, err = serveScripted(t, &scripted{raw: raw{plan: statusOf(codes.Unknown, packed)}}).Plan(t.Context(), pluginv1.Request{})
	requireBreach(t, err, "P-34", "has no key")
}

// TestWrongAnswers: an answer that the contract rules out is a defect of the plugin, and the error says which.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", pluginv1.MaxTextBytes+1)
	digest, other := make([]byte, 32), append(make([]byte, 31), 1)
	claims := func(claims ...*pb.Claim) *pb.PlanResponse { return &pb.PlanResponse{Claims: claims} }
	for name, tt := range map[string]struct {
		answer       *pb.PlanResponse
		failure      *pb.ErrorDetail
		clause, says string
	}{
		"no id":                    {answer: &pb.PlanResponse{Changes: []*pb.Change{change("a"), {Summary: "x"}}}, clause: "P-20", says: "without an id"},
		"no summary":               {answer: &pb.PlanResponse{Changes: []*pb.Change{{Id: "a"}}}, clause: "P-20", says: `the change "a" without a summary`},
		"one id twice":             {answer: &pb.PlanResponse{Changes: []*pb.Change{change("a"), change("b"), change("a")}}, clause: "P-20", says: `two changes with the id "a"`},
		"a long id":                {answer: &pb.PlanResponse{Changes: []*pb.Change{change(long)}}, clause: "P-31", says: "whose id has 4097 bytes"},
		"too many changes":         {answer: &pb.PlanResponse{Changes: make([]*pb.Change, pluginv1.MaxChanges+1)}, clause: "P-31", says: "10001 changes"},
		"a claim of nothing":       {answer: claims(&pb.Claim{Digest: digest}), clause: "P-32", says: "a claim has no id"},
		"a claim with a long id":   {answer: claims(&pb.Claim{Id: long, Digest: digest}), clause: "P-31", says: "the id of a claim has 4097 bytes"},
		"a claim without a digest": {answer: claims(&pb.Claim{Id: "file:/a"}), clause: "P-32", says: `the digest of the claim "file:/a" has 0 bytes`},
		"a contradiction": {
			answer: claims(&pb.Claim{Id: "file:/a", Digest: digest}, &pb.Claim{Id: "file:/a", Digest: other}),
			clause: "P-32", says: `claims "file:/a" twice, with different values`,
		},
		"too many claims":                   {answer: claims(make([]*pb.Claim, pluginv1.MaxClaims+1)...), clause: "P-31", says: "20001 claims"},
		"files without a request":           {answer: &pb.PlanResponse{Files: []*pb.PlannedFile{{Path: "/a"}}}, clause: "P-50", says: "does not ask for them"},
		"a listed change without a request": {answer: &pb.PlanResponse{Changes: []*pb.Change{{Id: "a", Summary: "x", Listed: true}}}, clause: "P-50", says: "does not ask for them"},
		"without a reason, of the document": {failure: &pb.ErrorDetail{Code: pb.Code_CODE_INVALID_CONFIG}, clause: "E-7", says: "InvalidConfig has neither a message nor violations"},
		"without a reason, of the machine":  {failure: &pb.ErrorDetail{Code: pb.Code_CODE_PRECONDITION, Hint: "x"}, clause: "E-7", says: "Precondition has neither"},
		"too many needs":                    {answer: &pb.PlanResponse{Needs: make([]string, 1001)}, clause: "P-31", says: "1001 things"},
		"a plan with such a need":           {answer: &pb.PlanResponse{Needs: []string{"unit:a.service#running", "kubelet"}}, clause: "P-53", says: "no id of a claim"},
		"a need that is no id": {
			failure: &pb.ErrorDetail{Code: pb.Code_CODE_PRECONDITION, Message: "x", Violations: []*pb.Violation{{Message: "x", Needs: "kubelet"}}},
			clause:  "P-53", says: "no id of a claim",
		},
		"an error that contradicts itself": {
			failure: &pb.ErrorDetail{Code: pb.Code_CODE_PRECONDITION, Message: "x", Claims: []*pb.Claim{{Id: "a", Digest: digest}, {Id: "a", Digest: other}}},
			clause:  "P-32", says: "twice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scripted{answer: tt.answer}
			if tt.failure != nil {
				packed, err := anypb.New(tt.failure)
				require.NoError(t, err)
				s.plan = statusOf(codes.Unknown, packed)
			}
			_, err := serveScripted(t, s).Plan(t.Context(), pluginv1.Request{ClaimKey: []byte("key")})
			requireBreach(t, err, tt.clause, tt.says)
		})
	}
}

func TestWrongDescriptions(t *testing.T) {
	t.Parallel()
	kind := &pb.Kind{ApiVersion: "a/v1", Kind: "K"}
	providing := func(ids ...string) *pb.DescribeResponse {
		kind := &pb.Kind{ApiVersion: "a/v1", Kind: "K", Provides: &pb.Provides{Ids: ids}}
		return &pb.DescribeResponse{Name: "n", Version: "1", Kinds: []*pb.Kind{kind}}
	}
	for name, tt := range map[string]struct {
		answer       *pb.DescribeResponse
		clause, says string
	}{
		"no name":            {answer: &pb.DescribeResponse{Version: "1"}, clause: "P-11", says: "no provider"},
		"no version":         {answer: &pb.DescribeResponse{Name: "n"}, clause: "P-11", says: "no version"},
		"no kind":            {answer: &pb.DescribeResponse{Name: "n", Version: "1", Kinds: []*pb.Kind{kind, {ApiVersion: "a/v1"}}}, clause: "P-11", says: "a kind without"},
		"many kinds":         {answer: &pb.DescribeResponse{Name: "n", Version: "1", Kinds: make([]*pb.Kind, 1001)}, clause: "P-31", says: "1001 kinds"},
		"many secret fields": {answer: &pb.DescribeResponse{Name: "n", Version: "1", Kinds: []*pb.Kind{{ApiVersion: "a", Kind: "K", SecretFields: make([]string, 1001)}}}, clause: "P-31", says: "1001 secret fields"},
		"many ids":           {answer: providing(make([]string, 1001)...), clause: "P-31", says: "provides 1001 ids"},
		"no id":              {answer: providing("sysctl:", "Sysctl"), clause: "P-53", says: "the kind K provides what is no beginning"},
		"a schema of 2 MiB":  {answer: &pb.DescribeResponse{Name: "n", Version: "1", Kinds: []*pb.Kind{{ApiVersion: "a", Kind: "K", JsonSchema: make([]byte, 2<<20)}}}, clause: "P-31", says: "the JSON schema of the kind K"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serveScripted(t, &scripted{description: tt.answer}).Describe(t.Context(), pluginv1.DescribeRequest{})
			requireBreach(t, err, tt.clause, tt.says)
		})
	}
}

// TestTextsAreCut: no text of a plugin takes more room than its bound, and what is cut says so.
func TestTextsAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 150<<10) // 300 KiB
	isCut := func(text string, most int) {
		t.Helper()
		assert.LessOrEqual(t, len(text), most)
		assert.Greater(t, len(text), most-8)
		at := strings.LastIndex(text, " [")
		require.Positive(t, at)
		assert.Equal(t, fmt.Sprintf(" [%d bytes cut]", len(long)-at), text[at:])
		assert.Equal(t, long[:at], text[:at])
	}
	facts, violations := map[string]string{}, []document.Violation{{Field: long, Message: long, Hint: long}}
	for i := range pluginv1.MaxFacts + 3 {
		facts[fmt.Sprintf("%03d", i)] = "x"
	}
	for range pluginv1.MaxViolations + 4 {
		violations = append(violations, document.Violation{Message: "x"})
	}
	warnings := append([]pluginv1.Warning{{Message: long}}, slices.Repeat([]pluginv1.Warning{{Message: "x"}}, pluginv1.MaxWarnings+5)...)
	facts["000"], facts[long] = long, "gone"
	var failure error
	client := serveFake(t, &fake{
		plan: func(pluginv1.Request) (pluginv1.Plan, error) {
			return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "a", Summary: long, Diff: long}}, Warnings: warnings[:pluginv1.MaxWarnings+5]}, failure
		},
		apply: func(_ pluginv1.Request, _ int, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
			for _, w := range warnings {
				if err := send(w); err != nil {
					return pluginv1.Finished{}, err
				}
			}
			return pluginv1.Finished{}, failure
		},
	})
	plan, err := client.Plan(t.Context(), pluginv1.Request{})
	require.NoError(t, err)
	isCut(plan.Changes[0].Diff, pluginv1.MaxDiffBytes)
	isCut(plan.Changes[0].Summary, pluginv1.MaxTextBytes)
	require.Len(t, plan.Warnings, pluginv1.MaxWarnings+1)
	isCut(plan.Warnings[0].Message, pluginv1.MaxTextBytes)
	assert.Equal(t, "and 5 more warnings", plan.Warnings[pluginv1.MaxWarnings].Message)

	failure = &pluginv1.Error{Code: pluginv1.CodeInvalidConfig, Message: long, Hint: long, Detail: long, Facts: facts, Violations: violations, Final: true}
	var received []string
	finished, err := client.Apply(t.Context(), pluginv1.Request{}, 0, func(e pluginv1.Event) error {
		w, ok := e.(pluginv1.Warning)
		assert.True(t, ok)
		received = append(received, w.Message)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, received, pluginv1.MaxWarnings+1)
	isCut(received[0], pluginv1.MaxTextBytes)
	assert.Equal(t, "and 6 more warnings", received[pluginv1.MaxWarnings])
	_, planErr := client.Plan(t.Context(), pluginv1.Request{})
	for _, e := range []*pluginv1.Error{finished.Error, pluginv1.AsError(planErr)} {
		isCut(e.Message, pluginv1.MaxTextBytes)
		isCut(e.Hint, pluginv1.MaxTextBytes)
		isCut(e.Detail, pluginv1.MaxDetailBytes)
		assert.False(t, e.Final, "only a Precondition is final")
		require.Len(t, e.Violations, pluginv1.MaxViolations+1)
		isCut(e.Violations[0].Field, pluginv1.MaxTextBytes)
		assert.Equal(t, "and 5 more violations", e.Violations[pluginv1.MaxViolations].Message)
		require.Len(t, e.Facts, pluginv1.MaxFacts+1)
		isCut(e.Facts["000"], pluginv1.MaxTextBytes)
		assert.Equal(t, strconv.Itoa(3), e.Facts["omitted"])
	}
}
