package settings

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// proxyBounds are of fields of kube-proxy's configuration. Source: pkg/proxy/apis/config/validation of Kubernetes.
func proxyBounds() map[string]bounds {
	natural, bit := bounds{0, unbounded}, bounds{0, 31}
	return map[string]bounds{
		"iptables.masqueradeBit": bit, "nftables.masqueradeBit": bit, "oomScoreAdj": {-1000, 1000}, "clientConnection.burst": natural,
		"iptables.syncPeriod": natural, "iptables.minSyncPeriod": natural, "nftables.syncPeriod": natural, "nftables.minSyncPeriod": natural,
		"ipvs.syncPeriod": natural, "ipvs.minSyncPeriod": natural, "ipvs.tcpTimeout": natural, "ipvs.tcpFinTimeout": natural, "ipvs.udpTimeout": natural,
		"conntrack.maxPerCore": natural, "conntrack.min": natural, "conntrack.tcpEstablishedTimeout": natural, "conntrack.tcpCloseWaitTimeout": natural,
		"conntrack.udpTimeout": natural, "conntrack.udpStreamTimeout": natural, "configSyncPeriod": natural,
	}
}

// checkProxy says with which value kube-proxy does not start.
func checkProxy(path string, value any) (message, hint string) {
	text, _ := value.(string)
	if b, ok := proxyBounds()[path]; ok && !b.have(value) {
		if b.most == unbounded {
			return fmt.Sprintf("must be at least %v", b.least), ""
		}
		return fmt.Sprintf("must be from %v to %v", b.least, b.most), ""
	}
	known := map[string][]string{
		"detectLocalMode": {"", "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"},
	}[path]
	if known != nil && !slices.Contains(known, text) {
		return "is not a value of this field", "use one of " + strings.Join(known[1:], ", ")
	}
	switch path {
	case "bindAddress":
		if text != "" && net.ParseIP(text) == nil {
			return "is not an IP address", "write it without a port, or remove it"
		}
	case "healthzBindAddress", "metricsBindAddress":
		if text != "" && !isAddressAndPort(text) {
			return "is not an IP address with a port", "write it like 127.0.0.1:10249, or 0.0.0.0:10249 for all addresses"
		}
	case "nodePortAddresses[]", "ipvs.excludeCIDRs[]":
		if _, err := netip.ParsePrefix(text); err != nil && (path != "nodePortAddresses[]" || text != "primary") {
			return "is not a range of addresses", "write it like 10.0.0.0/16, or 10.0.0.1/32 for one address"
		}
	case "clusterCIDR":
		for item := range strings.SplitSeq(text, ",") {
			if _, err := netip.ParsePrefix(strings.TrimSpace(item)); text != "" && err != nil {
				return "is not a range of addresses", "write it like 10.244.0.0/16, two families with a comma between them"
			}
		}
	}
	return "", ""
}

func isAddressAndPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	n, notNumber := strconv.Atoi(port)
	return err == nil && net.ParseIP(host) != nil && notNumber == nil && 0 < n && n <= 65535
}
