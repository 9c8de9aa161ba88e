package main

import (
	"bytes"
	"context"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/plugins/internal/form"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	google.Config
	// Generation is the version of the object. 0: the newest.
	Generation uint64 `json:"generation,omitempty"`
}

// storage is the service.
type storage struct{ google.Service }

// metadata is the part of an object's resource that matters here.
type metadata struct {
	Name        string            `json:"name"`
	ContentType string            `json:"contentType,omitempty"`
	Generation  string            `json:"generation,omitempty"`
	CustomTime  string            `json:"customTime,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// sequence is the custom metadata with the number of a report.
const sequence = "machineadm-sequence"

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](l.ProviderConfig)
	all := c.Violations()
	if l.Access != "" && c.Generation != 0 {
		all.Add(cloud.Config.Field("generation"), "is of one object", "remove it from the storage")
	}
	if l.Access == sdk.AccessPresigned && c.ServiceAccountKey == nil {
		all.Add("access", "is presigned, which needs the key of a service account", "give providerConfig.serviceAccountKey, or write role")
	}
	if _, _, ok := parse(l.URI); !ok {
		all.Add(document.Path(l.Field), "is not gs://BUCKET/OBJECT", "nothing in it is escaped; spec.providerConfig.generation names a version")
	}
	return document.Join(decoding, all)
}

// parse splits gs://BUCKET/OBJECT. Everything behind the bucket is the name of the object, as it is.
func parse(uri string) (bucket, object string, ok bool) {
	rest, isGS := strings.CutPrefix(uri, "gs://")
	bucket, object, _ = strings.Cut(rest, "/")
	return bucket, object, isGS && regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`).MatchString(bucket) &&
		object != "" && object != "." && object != ".." && len(object) <= 1024 && utf8.ValidString(object) && !form.HasControl(object)
}

// path is that of an object's resource.
func path(bucket, object string) string {
	return "/storage/v1/b/" + bucket + "/o/" + strings.ReplaceAll(url.PathEscape(object), "+", "%2B")
}

// fetch opens the object.
func (s storage) fetch(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	bucket, object, _ := parse(l.URI)
	query := "?alt=media"
	if c.Generation != 0 {
		query += "&generation=" + fmt.Sprint(c.Generation)
	}
	answer, err := s.Open(ctx, c.Config, cloud.Message{Method: http.MethodGet, URL: path(bucket, object) + query}) //nolint:bodyclose // the caller does
	if err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	return sdk.Object{Revision: answer.Header.Get("X-Goog-Generation"), Body: answer.Body}, nil
}

// report writes the report, unless there is a newer one. The write names the generation that was seen, 0 if there was none.
func (s storage) report(ctx context.Context, l sdk.Location, run sdk.RunReport) error {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	bucket, object, _ := parse(l.URI)
	if l.Beside {
		object += sdk.ReportSuffix
	}
	s.SpreadUntil = time.Time{} // 404 means that there is no report yet
	there := metadata{Generation: "0"}
	err := s.Exchange(ctx, c.Config, cloud.Message{Method: http.MethodGet, URL: path(bucket, object), Into: &there})
	if err != nil && cloud.Status(err) != http.StatusNotFound {
		return sdk.At(err, l.Field)
	}
	if newest, err := strconv.ParseUint(there.Metadata[sequence], 10, 64); err == nil && newest > run.Sequence {
		return nil
	}
	err = s.upload(ctx, c, bucket, "&ifGenerationMatch="+url.QueryEscape(there.Generation), metadata{
		Name: object, ContentType: "application/json", Metadata: map[string]string{sequence: fmt.Sprint(run.Sequence)},
	}, run.Body)
	return sdk.At(cloud.Changed(err), l.Field)
}

// upload writes an object under a condition, which may be empty.
func (s storage) upload(ctx context.Context, c config, bucket, condition string, m metadata, data []byte) error {
	body, contentType, err := related(cloud.JSON(m), data)
	if err != nil {
		return err
	}
	return s.Exchange(ctx, c.Config, cloud.Message{
		Method: http.MethodPost, Header: map[string]string{"Content-Type": contentType}, Body: body,
		URL: "/upload/storage/v1/b/" + bucket + "/o?uploadType=multipart" + condition,
	})
}

// related is a message of parts in JSON (RFC 2387).
func related(parts ...[]byte) (body []byte, contentType string, err error) {
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, part := range parts {
		to, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {"application/json"}})
		if err != nil {
			return nil, "", err
		}
		if _, err := to.Write(part); err != nil {
			return nil, "", err
		}
	}
	err = w.Close()
	return out.Bytes(), "multipart/related; boundary=" + w.Boundary(), err
}
