// Package domain provides tests with a real Active Directory domain: a Samba domain controller on a node of testenv/nodes, and
// nodes that find it by DNS and have the client programs of Debian, which check what the product does. Its accounts are in
// accounts.go and seed.sh, what can be made to fail in faults.go, and the programs that check a join in oracle.go. The first
// controller of a machine takes a minute, because its directory is provisioned into the cache of testenv/nodes; each other one
// takes seconds.
//
// Real are the directory, its access control, Kerberos, DNS and TLS. Shares, replication and NetBIOS are left out, because they
// double the time of a start. Not real is Windows: a controller of Microsoft can answer
// differently, and docs/limits.md says where that matters. What differs, as the tests show:
//
//   - Samba has no ms-DS-MachineAccountQuota: a user without the right to create is refused with 50 (insufficient access) whatever
//     the quota, where Active Directory answers 53 with 0000216D beyond the quota and allows it below.
//   - A site without a controller has no SRV records, where Active Directory has records of a near site's controllers.
//
// What matters to a client: the NetLogon ping is answered over TCP, TLS and UDP, to anonymous clients, with the sites of the
// controller and of the client's address, and with no entry for a foreign domain; GSSAPI needs a security layer on 389 (else 8)
// and must have none within TLS (else 8 or 53); a simple bind needs TLS (else 8).
package domain
