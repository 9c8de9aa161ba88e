package wrap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/host/controller/emit"
)

// maxSecret is the limit of the values of a Secret, together.
const maxSecret = 1 << 20

// targetLimit returns how many bytes of user data an infrastructure accepts before it encodes them, 0 for one without a limit.
func targetLimit(target string) (int, error) {
	switch target {
	case "":
		return 0, nil
	case "ec2": // Amazon EC2, "Instance user data"
		return 16 << 10, nil
	case "azure": // Azure, customData: "a maximum length of 65535 bytes" of the decoded data
		return 1<<16 - 1, nil
	case "gce": // Compute Engine, a metadata value
		return 256 << 10, nil
	case "vsphere": // vSphere, CloudinitPrep
		return 512 << 10, nil
	case "virtualbox": // VirtualBox, a guest property
		return 1 << 10, nil
	}
	return 0, fmt.Errorf("the target %q is none of ec2, azure, gce, vsphere and virtualbox", target)
}

// TooLargeError reports data that the infrastructure, or a Secret, does not hold.
type TooLargeError struct {
	Bytes, Limit int
	// Target is that of the format, empty if another limit was exceeded.
	Target string
	// Documents are the documents of the stream before it is compressed, the largest first.
	Documents []emit.Size
}

// shownSizes is how many documents an error lists.
const shownSizes = 5

// Error lists the largest documents and the remedy.
func (e *TooLargeError) Error() string {
	var list []string
	for _, d := range e.Documents[:min(len(e.Documents), shownSizes)] {
		list = append(list, fmt.Sprintf("%s/%s %d", d.Kind, d.Name, d.Bytes))
	}
	if more := len(e.Documents) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("%d more", more))
	}
	limit := fmt.Sprintf("%d bytes are allowed", e.Limit)
	remedy := "move files from the documents into the image"
	if e.Target != "" {
		limit = fmt.Sprintf("%s accepts %d", e.Target, e.Limit)
		remedy += ", or set format.maxBytes if the infrastructure accepts more"
	}
	return fmt.Sprintf("the data has %d bytes, %s; bytes per document before compression: %s: %s", e.Bytes, limit, strings.Join(list, ", "), remedy)
}

// limited returns the data unless it is too large.
func limited(f Format, value, stream []byte) (Data, error) {
	data := Data{Value: value, Format: "cloud-config"}
	if f.Type == ignition {
		data.Format = "ignition"
	}
	limit, err := targetLimit(f.Target)
	if err != nil {
		return Data{}, err
	}
	target := f.Target
	if f.MaxBytes > 0 {
		limit, target = f.MaxBytes, ""
	}
	if most := maxSecret - len(data.Format); limit == 0 || limit > most {
		limit, target = most, ""
	}
	if len(value) > limit {
		return Data{}, tooLarge(len(value), limit, target, stream)
	}
	return data, nil
}

func tooLarge(size, limit int, target string, stream []byte) error {
	sizes, err := emit.Sizes(stream)
	if err != nil {
		return err
	}
	slices.SortStableFunc(sizes, func(a, b emit.Size) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return &TooLargeError{Bytes: size, Limit: limit, Target: target, Documents: sizes}
}
