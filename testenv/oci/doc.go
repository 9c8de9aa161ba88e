// Package oci writes container images without a container engine: archives in the layout of the image specification, the same
// bytes for the same programs.
package oci
