package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/azure"
	"github.com/machineadm/machineadm/sdk"
)

// storage is the service.
type storage struct{ azure.Tokens }

const (
	// apiVersion is the version of the protocol: x-ms-version.
	apiVersion = "2023-11-03"
	// sequence is the metadata with the number of a report. Names of metadata are identifiers of C#.
	sequence = "x-ms-meta-machineadm_sequence"
)

// fetch opens the blob.
func (s storage) fetch(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	m := cloud.Message{Method: http.MethodGet, URL: l.URI}
	if c.VersionID != "" {
		m.URL += "?versionid=" + url.QueryEscape(c.VersionID)
	}
	m, err := s.authorized(ctx, c, m)
	if err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	answer, err := cloud.Client{TLS: c.TLS, SpreadUntil: s.SpreadUntil}.Open(ctx, m) //nolint:bodyclose // the caller does
	if err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	return sdk.Object{Revision: cmp.Or(answer.Header.Get("X-Ms-Version-Id"), answer.Header.Get("ETag")), Body: answer.Body}, nil
}

// report writes the report, unless there is a newer one. The write has the ETag that was seen as a condition, or that there is none.
func (s storage) report(ctx context.Context, l sdk.Location, run sdk.RunReport) error {
	if l.Beside {
		l.URI += sdk.ReportSuffix
	}
	there, err := s.exchange(ctx, l, cloud.Message{Method: http.MethodHead, URL: l.URI})
	header := map[string]string{"x-ms-blob-type": "BlockBlob", sequence: fmt.Sprint(run.Sequence), "Content-Type": "application/json"}
	switch {
	case cloud.Status(err) == http.StatusNotFound:
		header["If-None-Match"] = "*"
	case err != nil:
		return sdk.At(err, l.Field)
	default:
		header["If-Match"] = there.Get("ETag")
	}
	if newest, err := strconv.ParseUint(there.Get(sequence), 10, 64); err == nil && newest > run.Sequence {
		return nil
	}
	_, err = s.exchange(ctx, l, cloud.Message{Method: http.MethodPut, URL: l.URI, Header: header, Body: run.Body})
	return sdk.At(cloud.Changed(err), l.Field)
}

func (s storage) exchange(ctx context.Context, l sdk.Location, m cloud.Message) (http.Header, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	m, err := s.authorized(ctx, c, m)
	if err != nil {
		return nil, err
	}
	return cloud.Client{TLS: c.TLS}.Exchange(ctx, m)
}

// authorized adds the credentials to a message.
func (s storage) authorized(ctx context.Context, c config, m cloud.Message) (cloud.Message, error) {
	header := map[string]string{"x-ms-version": apiVersion, "x-ms-date": time.Now().UTC().Format(http.TimeFormat)}
	maps.Copy(header, m.Header)
	m.Header = header
	switch {
	case c.SAS != nil:
		m.URL += map[bool]string{true: "&", false: "?"}[strings.Contains(m.URL, "?")] + c.query()
	case c.SharedKey != nil:
		text, err := toSign(c.SharedKey.Account, m)
		if err != nil {
			return m, err
		}
		header["Authorization"] = "SharedKey " + c.SharedKey.Account + ":" + c.SharedKey.sign(text)
	default:
		token, err := s.Token(ctx, c.Identity, cloud.Client{TLS: c.TLS})
		if err != nil {
			return m, err
		}
		header["Authorization"] = "Bearer " + token
	}
	return m, nil
}

// toSign is the text that a key of an account signs. Source: Authorize with Shared Key, versions 2015-02-21 and later.
func toSign(account string, m cloud.Message) (string, error) {
	u, err := url.Parse(m.URL)
	if err != nil {
		return "", sdk.Precondition("the URL of the blob is not valid", "") // not err, which quotes it
	}
	length := ""
	if len(m.Body) > 0 {
		length = fmt.Sprint(len(m.Body))
	}
	// Content-Encoding, Content-Language, Content-MD5, Date, If-Modified-Since, If-Unmodified-Since and Range are not sent.
	lines := []string{
		m.Method, "", "", length, "", m.Header["Content-Type"], "", "", m.Header["If-Match"], m.Header["If-None-Match"], "", "",
	}
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		if strings.HasPrefix(name, "x-ms-") {
			lines = append(lines, name+":"+m.Header[name])
		}
	}
	lines = append(lines, "/"+account+u.EscapedPath())
	query := u.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		lines = append(lines, name+":"+query.Get(name))
	}
	return strings.Join(lines, "\n"), nil
}
