// Package aws compares the plugins for AWS with Debian's awscli and curl: against versitygw, which has the protocol of S3; against
// standin.py, which checks every call by the signatures and models of awscli's botocore; and with the metadata service of this package.
// Everything runs in a network namespace without other machines, which has the address of the metadata service.
package aws
