package main

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/plugins/internal/form"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	aws.Regional
	PathStyle bool   `json:"pathStyle,omitempty"`
	VersionID string `json:"versionId,omitempty"`
}

const (
	at          = document.Path("spec.providerConfig")
	beside      = sdk.ReportSuffix
	maxKeyBytes = 1024
	// sequence is the header that keeps the number of a report with the object.
	sequence = "X-Amz-Meta-Machineadm-Sequence"
)

// store reads and writes objects.
type store struct{ machine aws.Machine }

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](l.ProviderConfig)
	all := c.Validate("")
	if _, _, ok := parse(l.URI); !ok {
		all = append(all, sdk.Violation{
			Field: l.Field, Message: "is not the location of an object",
			Hint: "write it as s3://BUCKET/KEY; nothing of the key is escaped, and with the report it has at most 1024 bytes",
		})
	}
	if c.VersionID != "" && l.Access != "" {
		all = append(all, sdk.Violation{Field: string(at.Field("versionId")), Message: "is of one object", Hint: "remove it from the storage"})
	}
	if strings.ContainsFunc(c.VersionID, func(r rune) bool { return r <= ' ' || r > '~' }) || len(c.VersionID) > maxKeyBytes {
		all = append(all, sdk.Violation{
			Field: string(at.Field("versionId")), Message: "is not the ID of a version", Hint: "see the answer of list-object-versions",
		})
	}
	return document.Join(decoding, all)
}

// parse returns the parts of s3://BUCKET/KEY. The key is literal, as that of awscli is.
func parse(uri string) (bucket, key string, ok bool) {
	rest, ok := strings.CutPrefix(uri, "s3://")
	bucket, key, _ = strings.Cut(rest, "/")
	isBucket := regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`).MatchString(bucket) && !strings.Contains(bucket, "..")
	return bucket, key, ok && isBucket && key != "" && len(key)+len(beside) <= maxKeyBytes && utf8.ValidString(key) && !form.HasControl(key)
}

// object is an object of a store.
type object struct {
	aws.Access
	url *url.URL
}

// open returns the object of a valid location, with a suffix of its key.
func (s store) open(ctx context.Context, l sdk.Location, suffix string) (object, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig)
	a, err := s.machine.Access(ctx, c.Config, c.Region)
	if err != nil {
		return object{}, err
	}
	bucket, key, _ := parse(l.URI)
	u := a.URL("s3")
	u.Path = "/" + key + suffix
	_, notIP := netip.ParseAddr(u.Hostname())
	if c.PathStyle || notIP == nil || strings.Contains(bucket, ".") { // a certificate for *.HOST is for one label
		u.Path = "/" + bucket + u.Path
	} else {
		u.Host = bucket + "." + u.Host
	}
	if c.VersionID != "" && l.Field == "spec.uri" {
		u.RawQuery = url.Values{"versionId": {c.VersionID}}.Encode()
	}
	return object{a, u}, nil
}

func (s store) fetch(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	o, err := s.open(ctx, l, "")
	if err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	answer, err := o.Send(ctx, "s3", http.MethodGet, o.url, nil, nil) //nolint:bodyclose // the caller does
	if err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	version := answer.Header.Get("X-Amz-Version-Id")
	if version == "null" { // of a bucket without versions
		version = ""
	}
	return sdk.Object{Revision: cmp.Or(version, answer.Header.Get("ETag")), Body: answer.Body}, nil
}

// report writes the report unless there is one with the same number or a higher one. The condition of the request is the report
// that was seen, so that of two writers one is refused and looks again.
func (s store) report(ctx context.Context, l sdk.Location, run sdk.RunReport) error {
	suffix := ""
	if l.Beside {
		suffix = beside
	}
	o, err := s.open(ctx, l, suffix)
	if err != nil {
		return sdk.At(err, l.Field)
	}
	o.url.RawQuery = "" // a report has no version
	header := map[string]string{"Content-Type": "application/json", sequence: strconv.FormatUint(run.Sequence, 10)}
	seen, err := o.Definite().Send(ctx, "s3", http.MethodHead, o.url, nil, nil)
	switch {
	case err == nil:
		_ = seen.Body.Close() // there is none
		if n, err := strconv.ParseUint(seen.Header.Get(sequence), 10, 64); err == nil && n >= run.Sequence {
			return nil
		}
		header["If-Match"] = seen.Header.Get("ETag")
	case isAbsent(err):
		header["If-None-Match"] = "*"
	default:
		return sdk.At(err, l.Field)
	}
	answer, err := o.Send(ctx, "s3", http.MethodPut, o.url, header, run.Body)
	if err != nil {
		return sdk.At(err, l.Field)
	}
	return answer.Body.Close()
}

// isAbsent reports whether there may be no report yet: without the right to list the bucket, S3 answers 403 instead of 404.
func isAbsent(err error) bool {
	status := pluginv1.AsError(err).Facts[pluginv1.FactStatus]
	return status == "403" || status == "404"
}
