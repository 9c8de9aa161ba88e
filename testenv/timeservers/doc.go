// Package timeservers gives tests time servers, correct and wrong ones, on a network of nodes, and nodes on which the
// time daemons of Debian run.
//
// The daemons follow a server as on a machine of their own, except that they cannot read or set the clock. This is what
// they report in a container, the same on bookworm and trixie, seconds after a restart:
//
//   - chronyd -x selects the server after about 5 s (iburst). chronyc tracking reports it as synchronized: the reference
//     ID, Leap status Normal, an offset of microseconds; chronyc waitsync succeeds. Without -x chronyd ends at its start.
//   - ntpd of ntpsec selects the server after about 8 s (iburst). ntpq -pn marks it with '*', system variables are
//     leap=00, the server's stratum plus 1, refid and peer, but the status word is "leap_none, sync_unspec" with
//     freq_mode, a minute later too, and ntpwait says No. It logs "ntp_adjtime: Operation not permitted" and "adj_systime:
//     Operation not permitted", and runs on. Without "restrict 127.0.0.1" in its configuration it drops every query of
//     ntpq, which then prints "***Request timed out" after 10 s and exits with 0. /var/log/ntpsec is missing in
//     Debian's package: ntpd logs that, and works.
//   - systemd-timesyncd contacts the server at once. It logs "Failed to call clock_adjtime(): Operation not permitted",
//     then "Initial clock synchronization", and creates /run/systemd/timesync/synchronized.
//   - timedatectl's NTPSynchronized stays no with every daemon, because it is the state of the kernel's clock.
package timeservers
