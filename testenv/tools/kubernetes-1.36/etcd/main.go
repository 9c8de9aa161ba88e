// Command etcd is the etcd server as upstream builds it, whose own main package has another name.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
