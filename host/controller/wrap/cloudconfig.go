package wrap

import (
	"bytes"

	"github.com/machineadm/machineadm/contract/document"
)

const cloudConfigMark = "#cloud-config"

// cloudConfigText is what we use of the cloud-config of cloud-init and of cloudbase-init.
type cloudConfigText struct {
	WriteFiles []writtenFile `json:"write_files"`
	RunCmd     []string      `json:"runcmd,omitempty"`
}

type writtenFile struct {
	Path        string `json:"path"`
	Owner       string `json:"owner,omitempty"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

func (c cloudConfigText) text() ([]byte, error) {
	out := bytes.NewBufferString(cloudConfigMark + "\n")
	err := document.Encode(out, c)
	return out.Bytes(), err
}

// perBootText is a script that cloud-init runs at each boot, whatever the init system is, and that continues until the stream is applied:
// cloud-init runs a command of runcmd once. In the first boot it does nothing until runcmd starts it, with an argument, behind the commands
// of the user. After exit code 3 machineadm resumes by itself.
const (
	perBoot     = "/var/lib/cloud/scripts/per-boot/machineadm"
	perBootText = `#!/bin/sh
# Applies the documents of this machine, also in a boot after one that was cut off.
f=` + nodePath + `
[ -e $f ] || exit 0
[ "$1" ] || [ -e /var/lib/cloud/instance/sem/config_scripts_user ] || exit 0
/usr/bin/machineadm --bootstrap --path $f
c=$?
case $c in 0 | 3) rm -f $f ;; esac
exit $c
`
)

// renderCloudConfig writes the stream to the disk, from which a script removes it after success, and starts that script when the boot has
// finished.
//
// The part of the user comes first: its lists come before ours when cloud-init merges both, so that our command, which may
// reboot, is the last.
func renderCloudConfig(text []byte, packed bool, extra []byte) ([]byte, error) {
	node := writtenFile{Path: nodePath, Owner: "root:root", Permissions: "0600", Content: string(text)}
	if packed {
		node.Encoding, node.Content = "gz+b64", encoded(text)
	}
	own, err := cloudConfigText{
		WriteFiles: []writtenFile{
			node,
			{Path: perBoot, Owner: "root:root", Permissions: "0700", Content: perBootText},
		},
		RunCmd: []string{perBoot + " first"}, // a text, which programs other than cloud-init read, too
	}.text()
	if err != nil || extra == nil {
		return own, err
	}
	user, err := userPart(extra, map[string]part{
		cloudConfigMark:   {contentType: "text/cloud-config"},
		"#cloud-boothook": {contentType: "text/cloud-boothook"},
		"#!":              {contentType: "text/x-shellscript"},
	})
	if err != nil {
		return nil, err
	}
	return mixed(user, part{contentType: "text/cloud-config", merge: "list(append)+dict(no_replace,recurse_list)+str()", content: own}), nil
}
