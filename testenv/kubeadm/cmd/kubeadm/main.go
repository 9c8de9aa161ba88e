// Command kubeadm stands in for kubeadm, and under the name kubelet for the kubelet.
package main

import (
	"os"

	"github.com/machineadm/machineadm/testenv/kubeadm"
)

func main() { os.Exit(kubeadm.Main(os.Args, os.Stdin, os.Stdout)) }
