package controller

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func template(apiVersion, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
	}}
}

func TestCloneName(t *testing.T) {
	t.Parallel()
	base := template("example.com/v1", "HTTPProxyTemplate", "site")
	name := cloneName("worker-0", base)
	assert.Equal(t, name, cloneName("worker-0", template("example.com/v2", "HTTPProxyTemplate", "site")), "a version is no part of it")
	for about, other := range map[string]string{
		"another config":   cloneName("worker-1", base),
		"another template": cloneName("worker-0", template("example.com/v1", "HTTPProxyTemplate", "other")),
		"another kind":     cloneName("worker-0", template("example.com/v1", "FTPProxyTemplate", "site")),
		"another group":    cloneName("worker-0", template("example.org/v1", "HTTPProxyTemplate", "site")),
	} {
		assert.NotEqual(t, name, other, about)
	}
	for _, length := range []int{1, 241, 242, 243, 253} {
		config := strings.Repeat("a", length)
		name := cloneName(config, base)
		assert.Empty(t, validation.IsDNS1123Subdomain(name), "%d characters", length)
		assert.True(t, strings.HasPrefix(name, config[:min(length, 242)]+"-"), name)
	}
}

// TestLockName: the name that the bootstrap provider of kubeadm uses, so that both exclude each other.
func TestLockName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "first-lock", lockName(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "first"}}))
}
