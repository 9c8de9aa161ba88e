package packages

import (
	"testing"
	"time"

	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// BenchmarkDpkg installs both packages, beside packages of the same files without scripts.
func BenchmarkDpkg(b *testing.B) {
	n := bootWith(b, manifest.KindDeb, nodes.Options{Suite: nodes.Trixie})
	n.sh(b, `cd /srv && mkdir bare && for p in machineadm machineadm-plugins; do
dpkg-deb -R ${p}_`+oldDeb+`_amd64.deb x && rm -f x/DEBIAN/post* x/DEBIAN/pre* && dpkg-deb -z0 --root-owner-group -b x bare/$p.deb && rm -r x
dpkg-deb -R ${p}_`+oldDeb+`_amd64.deb x && mkdir -p ours && dpkg-deb -z0 --root-owner-group -b x ours/$p.deb && rm -r x; done`)
	spent := map[string]time.Duration{}
	for b.Loop() {
		for _, name := range []string{"bare", "ours"} {
			began := time.Now()
			n.sh(b, "dpkg -i /srv/"+name+"/*.deb")
			spent[name] += time.Since(began)
			n.sh(b, "dpkg --purge machineadm machineadm-plugins")
		}
	}
	for name, unit := range map[string]string{"bare": "bare-wall-ms", "ours": "wall-ms"} {
		b.ReportMetric(float64(spent[name].Milliseconds())/float64(b.N), unit)
	}
}
