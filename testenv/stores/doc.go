// Package stores runs the sources and key providers of services as processes, against the real service where it runs on this
// machine, and otherwise against a stand-in that is strict about its documentation.
package stores
