// Package nodes gives tests real machines: Debian or Ubuntu with systemd (on Debian, with Options.Init, another init system) as
// PID 1, booted from a cached system, with a disk that belongs to one test.
//
// A node is one of two things behind the same methods. By default it is a systemd-nspawn container in its own network
// namespace, which boots in a second or two. It has a real init, real services, real cloud-init and its own net.*
// sysctls. It does not have: a kernel of its own (vm.*, kernel.* sysctls and modules are the host's), a settable clock,
// memory or CPU limits without Options.Limits. Several containers of a test can share a network of the test's own, see
// NewNetwork. With Options.VM it is a virtual machine that has all of these, with Debian's kernel for clouds and an ext4
// disk that a power cut can interrupt, and without a network. It is emulated in software, which costs twenty to thirty
// seconds of a processor for a boot: tests that need it are in testenv/vm and run by make test-vm.
//
// Base systems and layers of packages are built once into the user's cache directory (machineadm-testenv) and never change: remove
// that directory to have them built from the mirror's newest packages. Stacks lists all that tests may boot. They are built before the tests.
package nodes
