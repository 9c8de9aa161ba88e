// Package wine runs the Windows builds under wine, on a booted node: unit tests of Windows code, and the command line with a
// plugin.
//
// Wine 10 has a registry, services, scheduled tasks, job objects and loopback TCP. It has no owners and no exact access
// control lists, and replaces no open file, so that a test here proves nothing about those. Its netapi32.dll joins no domain: a
// stand-in, which gcc for Windows builds on the node, records how it is called.
package wine
