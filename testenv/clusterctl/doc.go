// Package clusterctl tests a release of the controller with the real clusterctl: it installs, upgrades, moves and removes it, and
// generates clusters from its templates.
package clusterctl
