// Command timeserver answers NTP requests within a virtual machine, whose daemons set the clock that it started with: it
// counts from that time on by itself.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/machineadm/machineadm/testenv/timeservers"
)

func main() {
	address := flag.String("listen", "127.0.0.2:123", "UDP address to answer at")
	off := flag.Duration("off", 0, "what the served time is ahead of the clock when this program starts")
	flag.Parse()
	if err := serve(*address, *off); err != nil {
		fmt.Fprintln(os.Stderr, "timeserver:", err)
		os.Exit(1)
	}
}

func serve(address string, off time.Duration) error {
	conn, err := new(net.ListenConfig).ListenPacket(context.Background(), "udp", address)
	if err != nil {
		return err
	}
	start := time.Now()
	return timeservers.Serve(conn, func(request []byte, _ time.Time) []byte {
		// Since reads the monotonic clock.
		return timeservers.Correct(request, start.Add(off+time.Since(start)))
	})
}
