package wrap

import "fmt"

// MaxSecret is the limit of the values of a Secret, together.
const MaxSecret = 1 << 20

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

// TooLargeError reports data that the infrastructure, or a Secret, does not hold. It has no size of the data: it is compressed
// together with secret values, so that its size would confirm a guess of one.
type TooLargeError struct {
	// Limit is how many bytes, or commands of an answer file, are allowed.
	Limit int
	// Commands says that the limit is one of commands.
	Commands bool
	// Target is the target of the format, empty if another limit was exceeded.
	Target string
}

// Error is the limit.
func (e *TooLargeError) Error() string {
	switch {
	case e.Commands:
		return fmt.Sprintf("the data is too large: an answer file has at most %d commands", e.Limit)
	case e.Target != "":
		return fmt.Sprintf("the data is too large: %s accepts %d bytes", e.Target, e.Limit)
	}
	return fmt.Sprintf("the data is too large: %d bytes are allowed", e.Limit)
}

// limit is how many bytes data may have, and which target says so, if one does.
func (f Format) limit() (limit int, target string, err error) {
	limit, err = targetLimit(f.Target)
	target = f.Target
	if f.MaxBytes > 0 {
		limit, target = f.MaxBytes, ""
	}
	if most := MaxSecret - len(f.key()); limit == 0 || limit > most {
		limit, target = most, ""
	}
	return limit, target, err
}

// key is the text by which infrastructure providers know the format.
func (f Format) key() string {
	if f.Type == ignition {
		return "ignition"
	}
	return "cloud-config"
}

// limited returns the data unless it is too large.
func limited(f Format, value []byte) (Data, error) {
	limit, target, err := f.limit()
	if err != nil {
		return Data{}, err
	}
	if len(value) > limit {
		return Data{}, &TooLargeError{Limit: limit, Target: target}
	}
	return Data{Value: value, Format: f.key()}, nil
}
