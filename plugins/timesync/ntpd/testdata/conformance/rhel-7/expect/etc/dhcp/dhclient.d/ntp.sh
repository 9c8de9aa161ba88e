# adds the servers of DHCP to /etc/ntp.conf unless PEERNTP is no
