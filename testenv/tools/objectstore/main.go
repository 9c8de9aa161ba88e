// Command objectstore is an object store with the protocol of S3 in memory, at the address that it is given, with the bucket
// releases. Every request is allowed: a plain GET reads an object.
package main

import (
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "objectstore:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: objectstore ADDRESS:PORT")
	}
	store := s3mem.New()
	if err := store.CreateBucket("releases"); err != nil {
		return err
	}
	server := http.Server{Addr: arguments[0], Handler: gofakes3.New(store).Server(), ReadHeaderTimeout: time.Minute}
	return server.ListenAndServe()
}
