// Package bootstrapdata passes the output of host/controller/wrap to the programs that read it on a machine: cloud-init of Debian
// 12 and 13, Ignition of Debian 12, the shell of Combustion, xmllint, and the parser of MIME messages that cloudbase-init uses. On
// booted nodes the output prepares the machine, over a reboot.
//
// The nested module parsers has the parsers that are Go libraries.
package bootstrapdata
