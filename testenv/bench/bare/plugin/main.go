// Command plugin is the bare plugin.
package main

import "github.com/machineadm/machineadm/testenv/bench/bare"

func main() { bare.Serve() }
