// Package components makes a release of the controller, in the layout of a clusterctl repository in files:
//
//	bootstrap-machineadm/VERSION/metadata.yaml              the contract of each series of versions
//	bootstrap-machineadm/VERSION/bootstrap-components.yaml  what clusterctl init applies
//	bootstrap-machineadm/VERSION/cluster-template*.yaml     examples of clusters, and their ClusterClass
//	manager-VERSION.tar                                     the image, as an archive of the OCI layout
//
// The same source gives the same bytes.
package components
