package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// metadata is the part of an object's metadata that matters here.
type metadata struct {
	Name            string            `json:"name,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// secret is a Secret. encoding/json decodes the base64 of its values.
type secret struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metadata          `json:"metadata"`
	Data       map[string][]byte `json:"data"`
}

// configMap is a ConfigMap.
type configMap struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metadata          `json:"metadata"`
	Data       map[string]string `json:"data,omitempty"`
}

// sequence is the annotation with the number of a report.
const sequence = "machineadm.cluster.x-k8s.io/sequence"

// fetch gets the Secret. It has at most 1 MiB, so it is not streamed.
func fetch(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	at, _ := parse(l.Field, l.URI) // validated before
	if at.key == reportKey && strings.HasSuffix(l.URI, sdk.ReportSuffix) {
		return fetchReport(ctx, l, at)
	}
	var s secret
	if _, err := exchange(ctx, l, cloud.Message{Method: http.MethodGet, URL: at.url("secrets"), Into: &s}); err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	data, ok := s.Data[at.key]
	return found(l, s.Metadata, data, ok)
}

// fetchReport gets a report that a machine keeps beside a stored stream.
func fetchReport(ctx context.Context, l sdk.Location, at place) (sdk.Object, error) {
	var m configMap
	if _, err := exchange(ctx, l, cloud.Message{Method: http.MethodGet, URL: at.url("configmaps"), Into: &m}); err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	data, ok := m.Data[at.key]
	return found(l, m.Metadata, []byte(data), ok)
}

// found returns the value of a key.
func found(l sdk.Location, m metadata, data []byte, ok bool) (sdk.Object, error) {
	if !ok {
		return sdk.Object{}, sdk.At(sdk.Answered(sdk.Precondition("the object does not have this key", "check the last part of the URI"), http.StatusNotFound), l.Field)
	}
	return sdk.Object{Revision: m.ResourceVersion, Body: io.NopCloser(bytes.NewReader(data))}, nil
}

// report writes the ConfigMap, unless it has a newer report. Both requests are server-side apply, which can make an object whose
// name a Role restricts, and keeps what others own: labels, and the owner with which the ConfigMap is deleted. The first owns no
// field: it returns what is there, and makes an empty object if nothing is. The second names the version that was returned.
func report(ctx context.Context, l sdk.Location, run sdk.RunReport) error {
	at, _ := parse(l.Field, l.URI) // validated before
	if l.Beside {
		var err error
		if at, err = at.beside(); err != nil {
			return err
		}
	}
	there, err := apply(ctx, l, at, "machineadm-create", metadata{}, nil)
	if err != nil {
		return sdk.At(err, l.Field)
	}
	if newest, err := strconv.ParseUint(there.Metadata.Annotations[sequence], 10, 64); err == nil && newest > run.Sequence {
		return nil
	}
	_, err = apply(ctx, l, at, "machineadm", metadata{
		ResourceVersion: there.Metadata.ResourceVersion, Annotations: map[string]string{sequence: fmt.Sprint(run.Sequence)},
	}, map[string]string{at.key: string(run.Body)})
	return sdk.At(cloud.Changed(err), l.Field)
}

// apply makes a ConfigMap have these metadata and data, as the given manager of fields, and returns what it is then.
func apply(ctx context.Context, l sdk.Location, at place, manager string, m metadata, data map[string]string) (configMap, error) {
	var there configMap
	m.Name = at.name
	err := applied(ctx, l, at.url("configmaps"), manager, configMap{"v1", "ConfigMap", m, data}, &there)
	return there, err
}

// applied sends an object by server-side apply, as the given manager of fields.
func applied(ctx context.Context, l sdk.Location, url, manager string, object, into any) error {
	_, err := exchange(ctx, l, cloud.Message{
		Method: http.MethodPatch, URL: url + "?force=true&fieldManager=" + manager,
		Header: map[string]string{"Content-Type": "application/apply-patch+yaml"}, // JSON is YAML
		Body:   cloud.JSON(object), Into: into,
	})
	return err
}

func exchange(ctx context.Context, l sdk.Location, m cloud.Message) (http.Header, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	if m.Header == nil {
		m.Header = map[string]string{}
	}
	m.Header["Authorization"], m.Header["Accept"] = "Bearer "+string(c.Token.Reveal()), "application/json"
	return cloud.Client{TLS: c.tls()}.Exchange(ctx, m)
}
