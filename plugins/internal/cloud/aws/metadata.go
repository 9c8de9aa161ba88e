package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

const (
	spreading   = time.Minute     // from the start of the plugin, new roles and objects may be unknown
	answerTime  = 2 * time.Second // the service is on the link, and outside of EC2 nothing answers
	maxMetadata = 64 << 10
	noRole      = "attach an instance profile with a role to the instance, or give accessKeyID and secretAccessKey in spec.providerConfig"
)

// role returns the keys of the instance's role and the region, the instance's if it is empty. Nothing is kept, because the
// keys expire. Source: the EC2 User Guide, "Use the Instance Metadata Service to access instance metadata", version 2 of the service.
func (m Machine) role(ctx context.Context, wanted string) (k credentials, region string, err error) {
	base, token, err := m.token(ctx)
	if err != nil {
		return k, region, err
	}
	get := func(path string) ([]byte, error) {
		return m.metadata(ctx, http.MethodGet, base+"/latest/meta-data/"+path, "X-aws-ec2-metadata-token", token)
	}
	if region = wanted; region == "" {
		data, err := get("placement/region")
		if err != nil {
			return k, region, err
		}
		if region = string(data); !isRegion(region) {
			return k, region, sdk.Precondition("the metadata service has no region", "set spec.providerConfig.region")
		}
	}
	names, err := get("iam/security-credentials/")
	if err != nil {
		return k, region, err
	}
	name, _, _ := strings.Cut(string(names), "\n")
	if !regexp.MustCompile(`^[\w+=,.@-]{1,64}$`).MatchString(name) {
		return k, region, sdk.Precondition("the instance has no role", noRole)
	}
	data, err := get("iam/security-credentials/" + name)
	if err != nil {
		return k, region, err
	}
	var keys struct {
		Code, AccessKeyId, SecretAccessKey, Token string //nolint:revive // the names of the service
		Expiration                                time.Time
	}
	isWhole := json.Unmarshal(data, &keys) == nil && keys.AccessKeyId != "" && keys.SecretAccessKey != "" && keys.Token != ""
	if !isWhole || keys.Code != "Success" {
		const message = "the metadata service has no keys for the role of the instance"
		if time.Now().Before(m.Started.Add(spreading)) {
			return k, region, sdk.Retry(0, message)
		}
		return k, region, sdk.Precondition(message, "check that the role trusts ec2.amazonaws.com, and its instance profile")
	}
	k.id, k.expires = keys.AccessKeyId, keys.Expiration
	k.secret, k.token = v1alpha1.NewSecret([]byte(keys.SecretAccessKey)), v1alpha1.NewSecret([]byte(keys.Token))
	return k, region, nil
}

// token opens a session with the first metadata service that can be reached, and returns its URL.
func (m Machine) token(ctx context.Context) (base, token string, first error) {
	for _, base := range m.Metadata {
		data, err := m.metadata(ctx, http.MethodPut, base+"/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60")
		if err == nil {
			return base, string(data), nil
		}
		if first == nil {
			first = err
		}
	}
	return "", "", first
}

// metadata makes a request to the metadata service: directly, without a redirect.
func (m Machine) metadata(ctx context.Context, method, url, header, value string) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	r, err := http.NewRequestWithContext(within, method, url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set(header, value)
	client := cloud.Client{
		Direct: true, SpreadUntil: m.Started.Add(spreading), Explain: func(*http.Response) cloud.Meaning { return cloud.Meaning{Hint: noRole} },
	}
	answer, err := client.Do(r) //nolint:bodyclose // read closes it
	var data []byte
	if err == nil {
		data, err = read(answer, maxMetadata)
	}
	if known, ok := errors.AsType[*pluginv1.Error](err); ok { // without the fact that an object is refused
		known.Facts, known.Hint = nil, cmp.Or(known.Hint, noRole)
		return nil, known
	}
	if err != nil && ctx.Err() == nil { // within has ended
		return nil, sdk.Retry(0, "the metadata service of EC2 does not answer: outside of EC2 give accessKeyID and secretAccessKey in "+
			"spec.providerConfig; in a container the hop limit of the instance has to be 2")
	}
	return data, err
}
