package wrap

import (
	"bytes"

	"github.com/machineadm/machineadm/contract/document"
)

const cloudConfigMark = "#cloud-config"

// cloudConfigText is what we use of the cloud-config of cloud-init and of cloudbase-init.
type cloudConfigText struct {
	WriteFiles []writtenFile `json:"write_files"`
	RunCmd     [][]string    `json:"runcmd,omitempty"`
}

type writtenFile struct {
	Path        string `json:"path"`
	Owner       string `json:"owner,omitempty"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding"`
	Content     string `json:"content"`
}

func (c cloudConfigText) text() ([]byte, error) {
	out := bytes.NewBufferString(cloudConfigMark + "\n")
	err := document.Encode(out, c)
	return out.Bytes(), err
}

// renderCloudConfig writes the stream to /run, which forgets it, and runs machineadm when the boot has finished.
//
// The part of the user comes first: its lists come before ours when cloud-init merges both, so that our command, which may
// reboot, is the last.
func renderCloudConfig(packed, extra []byte) ([]byte, error) {
	const path = "/run/machineadm/node.yaml"
	own, err := cloudConfigText{
		WriteFiles: []writtenFile{
			{Path: path, Owner: "root:root", Permissions: "0600", Encoding: "gz+b64", Content: encoded(packed)},
		},
		RunCmd: [][]string{{"/usr/bin/machineadm", "--bootstrap", "--path", path}},
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
