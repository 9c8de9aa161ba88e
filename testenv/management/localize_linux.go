package management

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// localize replaces the Services of webhooks, of admission and of conversion, by the URL of a process, and the certificate
// that cert-manager would inject by the authority's. Other documents stay as they are: clusterctl replaces
// variables in them.
func localize(manifests []byte, url string, ca []byte) ([]byte, error) {
	all, err := documents(manifests)
	if err != nil {
		return nil, err
	}
	for i, document := range all {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		configs := clientConfigs(o)
		for _, config := range configs {
			path, _, err := unstructured.NestedString(config, "service", "path")
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.GetName(), err)
			}
			delete(config, "service")
			config["url"], config["caBundle"] = url+path, base64.StdEncoding.EncodeToString(ca)
		}
		if len(configs) == 0 {
			continue
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "cert-manager.io/inject-ca-from")
		if all[i], err = json.Marshal(o); err != nil {
			return nil, err
		}
	}
	return bytes.Join(all, []byte("\n---\n")), nil
}

// clientConfigs returns the parts of an object that say where its webhooks are.
func clientConfigs(o *unstructured.Unstructured) []map[string]any {
	hooks, _, _ := unstructured.NestedFieldNoCopy(o.Object, "webhooks")
	list, _ := hooks.([]any)
	if !strings.HasSuffix(o.GetKind(), "WebhookConfiguration") {
		list = nil
	}
	if o.GetKind() == "CustomResourceDefinition" {
		if hook, ok, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "conversion", "webhook"); ok {
			list = []any{hook}
		}
	}
	var configs []map[string]any
	for _, hook := range list {
		hook, _ := hook.(map[string]any)
		if config, ok := hook["clientConfig"].(map[string]any); ok {
			configs = append(configs, config)
		}
	}
	return configs
}
