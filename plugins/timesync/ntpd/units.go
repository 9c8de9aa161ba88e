package main

// ntpsecUnit is the service of NTPsec on Debian and Ubuntu, which has the other units as aliases.
const ntpsecUnit = "ntpsec.service"

// units are the names of ntpd's service: of NTPsec on Debian, of the reference implementation on Debian, and of all others.
func units() []string { return []string{ntpsecUnit, "ntp.service", "ntpd.service"} }
