package main

const (
	serviceName = "W32Time"
	// otherName is the service of ntpd for Windows, as Meinberg packages it. It uses the same UDP port.
	otherName = "NTP"
)
