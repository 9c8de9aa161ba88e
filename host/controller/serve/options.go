package serve

import (
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/machineadm/machineadm/contract/report"
)

// Options are what a Server is made of.
type Options struct {
	// Address is HOST:PORT or :PORT to listen on.
	Address      string
	Certificates *Certificates
	Backend      Backend
	// Releases is a directory whose files are handed out. Empty: none are.
	Releases string
	Registry prometheus.Registerer
	Log      logr.Logger
	// Limits are DefaultLimits if all are zero; to change one, begin with those.
	Limits Limits
}

// Limits bound what clients can hold.
type Limits struct {
	// Connections bounds the open connections, and PerAddress those from one address. A connection beyond is closed unread.
	Connections, PerAddress int
	// Requests bounds the requests that the backend works on. A request beyond waits its turn, and gets 429 after Wait. Downloads bounds the
	// files that are being sent. One beyond gets 429 at once.
	Requests, Downloads int
	// HeaderBytes is the size of a header; net/http adds 4 KiB. BodyBytes is the size of a report.
	HeaderBytes int
	BodyBytes   int64
	// Header is the time for the TLS handshake, and again for a header. Read is the time for a whole request, and Write for its
	// answer or each 64 KiB of it. Wait is the time in which the backend has to get free, Work the time for the backend, and Drain for requests in work when the server ends.
	Header, Read, Write, Wait, Work, Drain time.Duration
	// Each address has DeniedBurst requests that are denied, and gets back DeniedRate in a second. Without any left its requests get
	// 429, and the backend is not asked. Addresses is how many are counted at once; more of them make the server forget older ones.
	DeniedRate             float64
	DeniedBurst, Addresses int
}

// DefaultLimits are for 10,000 machines that boot in one minute.
func DefaultLimits() Limits {
	return Limits{
		Connections: 2048, PerAddress: 256, Requests: 128, Downloads: 1024,
		HeaderBytes: 16 << 10, BodyBytes: report.MaxBytes,
		Header: 10 * time.Second, Read: 30 * time.Second, Write: 30 * time.Second,
		Wait: 5 * time.Second, Work: 10 * time.Second, Drain: 10 * time.Second,
		DeniedRate: 10, DeniedBurst: 100, Addresses: 10_000,
	}
}
