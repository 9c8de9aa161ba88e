package main

const (
	unitName = "systemd-timesyncd.service"
	ownFile  = "/etc/systemd/timesyncd.conf.d/zz-machineadm.conf"
	ownMode  = 0o644

	// maxRootDistance is the largest limit in seconds: a server that has run alone for weeks is within an hour.
	maxRootDistance = 3600
)
