package controller

import "strings"

// dataSuffix is what the names of Secrets with bootstrap data end in. No program looks for a Secret by such a name, so that the text
// of a config cannot become a kubeconfig, an authority or a key.
const dataSuffix = "-machineadm-data"

func dataName(config string) string { return config + dataSuffix }

// configOfData is the name of the config that a Secret with data belongs to.
func configOfData(secret string) (config string, ok bool) {
	return strings.CutSuffix(secret, dataSuffix)
}

const storageField = "spec.storageRef"

// The keys of a Secret with bootstrap data. Infrastructure providers read value and format; documents is what the endpoint serves.
const (
	valueKey     = "value"
	formatKey    = "format"
	documentsKey = "documents"
)
