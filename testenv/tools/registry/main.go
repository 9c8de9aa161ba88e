// Command registry is the distribution registry, as its authors' own command, with storage in files and basic
// authentication alone: the drivers for the object stores of three clouds would take minutes to build.
package main

import (
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
)

func main() {
	if err := registry.RootCmd.Execute(); err != nil {
		os.Exit(1) // the command has said why
	}
}
