# What a controller's first boot finds: the directory with its accounts. The variables come from accounts.go.
ip link set lo up # Samba 4.22 demands an interface of every program
rm -f /etc/samba/smb.conf
samba-tool domain provision --realm="$realm" --domain="$netbios" --server-role=dc --dns-backend=SAMBA_INTERNAL \
	--adminpass="$administrator" --host-name="$host" --host-ip="$address" --option='interfaces=lo eth0' \
	--option='bind interfaces only=yes' --option='dns forwarder=' --option='log level=1' \
	--option='server services=ldap, cldap, kdc, dns, rpc' --option='prefork children=1'
samba_spnupdate # which a service does that does not run here
# The passwords of a directory that stays in the cache must not expire there.
samba-tool domain passwordsettings set --max-pwd-age=999

samba-tool ou create "OU=Servers,$base"
samba-tool ou create "OU=Locked,$base"
user() { samba-tool user create "$@"; }
user joiner "$joiner"
user resetter "$resetter"
user plain "$plain"
user disabled "$disabled"
user expired "$expired"
user passwordexpired "$passwordexpired"
user lockedout "$lockedout"
user mustchange "$mustchange" --must-change-at-next-login
user holder --random-password
samba-tool spn add "HTTP/duplicate.$name" holder
samba-tool user disable disabled
samba-tool user setexpiry expired --days=0

computer() { samba-tool computer create "$1" --computerou=OU=Servers && samba-tool user setpassword "$1\$" --newpassword="$2"; }
computer STAGED "$staged"
computer STAGEDOFF "$stagedoff"
computer TAKEN "$taken"
samba-tool user disable 'STAGEDOFF$'
samba-tool spn add HOST/taken 'TAKEN$'
samba-tool spn add "HOST/taken.$name" 'TAKEN$'

sid() { samba-tool user show "$1" --attributes=objectSid | sed -n 's/^objectSid: //p'; }
computers=bf967a86-0de6-11d0-a285-00aa003049e2 reset=00299570-246d-11d0-a768-00aa006e0529
# Create and delete computers in the unit, and full control of those below it; reset and write those that are there.
joiner=$(sid joiner) resetter=$(sid resetter)
samba-tool dsacl set --objectdn="OU=Servers,$base" --sddl="(OA;CI;CCDC;$computers;;$joiner)(OA;CIIO;GA;;$computers;$joiner)(OA;CIIO;CR;$reset;$computers;$resetter)(OA;CIIO;RPWP;;$computers;$resetter)"

samba-tool sites create Branch

sam=/var/lib/samba/private/sam.ldb
# Otherwise each user may create ten computers. A lock ends after half an hour where the duration is not 0.
ldbmodify -H $sam <<-end
	dn: $base
	changetype: modify
	replace: ms-DS-MachineAccountQuota
	ms-DS-MachineAccountQuota: 0
	-
	replace: lockoutDuration
	lockoutDuration: 0

	dn: CN=lockedout,CN=Users,$base
	changetype: modify
	replace: lockoutTime
	lockoutTime: 132000000000000000
end
# The control lets other values be set than 0 and -1: DSDB_CONTROL_BYPASS_PASSWORD_HASH_OID.
ldbmodify -H $sam --controls=local_oid:1.3.6.1.4.1.7165.4.3.12:1 <<-end
	dn: CN=passwordexpired,CN=Users,$base
	changetype: modify
	replace: pwdLastSet
	pwdLastSet: 120000000000000000
end
