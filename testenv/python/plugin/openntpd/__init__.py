"""A plugin of machineadm that configures OpenNTPD on a system with OpenRC: the provider openntpd of Timesync.

Its comments name the clauses of contract/SPEC.md. testenv/foreign/openntpd is the same provider in Go.
"""
