// Package nodes gives tests real machines: Debian with systemd as PID 1, booted from a cached root file system
// under an overlay that belongs to one test.
//
// Today a node is a systemd-nspawn container in its own network namespace. It has a real init, real services,
// real cloud-init and its own net.* sysctls. It does not have: a kernel of its own (vm.*, kernel.* sysctls and
// modules are the host's), a settable clock, memory or CPU limits. What needs those waits for a virtual machine,
// which fits behind the same Node.
//
// Root file systems are built once into the user's cache directory (machineadm-testenv) and never change:
// remove that directory to have them built from the mirror's newest packages.
package nodes
