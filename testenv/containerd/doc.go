// Package containerd provides tests with real containerds, each on a booted node of its own, with a real registry, and
// tests the facts that the ContainerRuntime plugin relies on. FACTS.md lists those facts.
//
// Two versions are Debian's own packages, two are built from the modules in testenv/tools and installed as upstream's
// archive is: programs in /usr/local/bin and a unit in /usr/local/lib/systemd/system. They are built without cgo, so
// that they lack the btrfs snapshotter.
package containerd
