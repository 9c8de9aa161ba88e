// Package domainjoin makes nodes members of a real Active Directory domain with the host and the plugin, as they are installed,
// and checks the result with programs that are not ours: MIT Kerberos, adcli and sssd.
package domainjoin
