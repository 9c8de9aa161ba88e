// Package domain provides tests with a real Active Directory domain: a Samba domain controller on a node of testenv/nodes, and
// nodes that find it by DNS and have the client programs of Debian, which check what the product does.
//
// Real are the directory, its access control, Kerberos, DNS and TLS. Not real is Windows: a controller of Microsoft can answer
// differently, and docs/limits.md says where that matters.
package domain
