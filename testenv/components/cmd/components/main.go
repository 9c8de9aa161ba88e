// Command components writes a release of the controller into dist/cluster-api, from the programs in dist/linux-*.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/machineadm/machineadm/testenv/components"
)

func main() {
	var r components.Release
	flag.StringVar(&r.Version, "version", "", "version of the release, as v1.2.3")
	flag.StringVar(&r.Image, "image", "localhost/machineadm/manager", "repository of the image, with its registry; localhost is for nodes that import the archive")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := r.Write(ctx, os.Stderr, "dist/cluster-api", map[string]string{
		"amd64": "dist/linux-amd64/manager", "arm64": "dist/linux-arm64/manager",
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "components:", err)
		os.Exit(1)
	}
}
