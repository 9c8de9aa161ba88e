package main

import "flag"

var _ = flag.Bool("update", false, "write the golden files")
