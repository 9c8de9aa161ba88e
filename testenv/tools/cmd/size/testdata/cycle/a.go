// Package cycle has two files that use each other.
package cycle

// A is used by B.
func A() { B() }
