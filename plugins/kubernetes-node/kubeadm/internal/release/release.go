// Package release reads the versions of Kubernetes and of its programs, and compares them.
package release

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// The minor versions of kubeadm that this plugin supports, of major version 1.
const (
	Oldest = 30
	Newest = 37
)

// Version is a version of Kubernetes or of one of its programs.
type Version struct {
	Major, Minor, Patch int
	// Suffix is a pre-release or build with its leading - or +.
	Suffix string
}

// Parse reads a version such as v1.37.1, v1.30.14-eks-1 or v1.36.0+vendor. Its error does not quote the text.
func Parse(text string) (Version, error) {
	const number = `(0|[1-9][0-9]{0,3})`
	parts := regexp.MustCompile(`^v` + number + `\.` + number + `\.` + number + `([+-][0-9A-Za-z.+-]{1,64})?$`).FindStringSubmatch(text)
	if parts == nil {
		return Version{}, errors.New("is not a version of Kubernetes")
	}
	v := Version{Suffix: parts[4]}
	for i, into := range []*int{&v.Major, &v.Minor, &v.Patch} {
		*into, _ = strconv.Atoi(parts[i+1]) // digits
	}
	return v, nil
}

// String returns the form that Parse reads.
func (v Version) String() string {
	return fmt.Sprintf("v%d.%d.%d%s", v.Major, v.Minor, v.Patch, v.Suffix)
}
