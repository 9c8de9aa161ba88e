# adds the servers of DHCP
[ "$PEERNTP" = no ] || echo "server $new_ntp_servers" >>/etc/ntp.conf
