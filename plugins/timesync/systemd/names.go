package main

const (
	unitName = "systemd-timesyncd.service"
	ownFile  = "/etc/systemd/timesyncd.conf.d/zz-machineadm.conf"
	ownMode  = 0o644
)
