// Command kubeletconfig says, for each line of its standard input, what the kubelet makes of it as its configuration, in JSON: one line
// that is empty for nothing, "dropped: " and why it reads the configuration without a part of it, or why it does not start.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // as in the kubelet
	"k8s.io/klog/v2"
	config "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
)

func main() {
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Println(strings.ReplaceAll(answer(lines.Bytes()), "\n", " "))
	}
}

func answer(data []byte) (what string) {
	defer func() { // the defaults of an unknown gate
		if p := recover(); p != nil {
			what = fmt.Sprint(p)
		}
	}()
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return err.Error()
	}
	_, _, strict := codecs.UniversalDecoder().Decode(data, nil, nil)
	ctx := klog.NewContext(context.Background(), klog.Logger{})
	kc, err := codec.DecodeKubeletConfiguration(ctx, codecs, data)
	if err == nil {
		err = errors.Join(validation.ValidateKubeletConfiguration(kc, utilfeature.DefaultFeatureGate), started(kc))
	}
	switch {
	case err != nil:
		return err.Error()
	case strict != nil:
		return "dropped: " + strict.Error()
	}
	for _, server := range kc.ClusterDNS {
		if net.ParseIP(server) == nil {
			return "dropped: the name server is not an address"
		}
	}
	return ""
}

// started says what the kubelet checks after the validation of its configuration, before it looks at the machine.
func started(kc *config.KubeletConfiguration) error {
	_, ciphers := flag.TLSCipherSuites(kc.TLSCipherSuites)
	_, version := flag.TLSVersion(kc.TLSMinVersion)
	_, thresholds := eviction.ParseThresholdConfig(kc.EnforceNodeAllocatable, kc.EvictionHard, kc.EvictionSoft, kc.EvictionSoftGracePeriod, kc.EvictionMinimumReclaim)
	_, size := resource.ParseQuantity(kc.ContainerLogMaxSize)
	return errors.Join(ciphers, version, thresholds, size)
}
