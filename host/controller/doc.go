// Package controller makes the bootstrap data of machines: it reconciles MachineBootstrapConfigs in a management cluster of
// Cluster API.
//
// Whatever decides is pure and in a package of its own: emit (documents to a stream), wrap (a stream to the format of a first
// boot), kubernetesnode (what Cluster API has of a machine) and token. This package reads objects and writes what those return.
package controller
