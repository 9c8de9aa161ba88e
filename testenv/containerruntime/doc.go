// Package containerruntime runs the real host with the real ContainerRuntime plugin against real containerds, each on a
// booted node of its own.
package containerruntime
