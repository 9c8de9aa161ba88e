package wrap

import (
	"bytes"
	"fmt"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

// UnsupportedError reports a document that an operating system cannot apply.
type UnsupportedError struct{ Kind, Name, Message string }

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s/%s: %s", e.Kind, e.Name, e.Message)
}

// refuseOnTalos refuses documents that no extension of Talos can apply.
func refuseOnTalos(stream []byte) error {
	read, err := document.Decode("", bytes.NewReader(stream))
	if err != nil {
		return err //nolint:wrapcheck // a reader of bytes does not fail
	}
	for _, d := range read.Documents {
		if d.Kind == contract.KindKubernetesNode {
			return &UnsupportedError{
				d.Kind, d.Name, "Talos has neither a shell nor kubeadm, and joins clusters by itself: leave this document out for the format talos",
			}
		}
	}
	return nil
}

// talosExtension is the configuration of an extension service. Source: Talos, ExtensionServiceConfig.
type talosExtension struct {
	APIVersion  string      `json:"apiVersion"`
	Kind        string      `json:"kind"`
	Name        string      `json:"name"`
	ConfigFiles []talosFile `json:"configFiles"`
}

type talosFile struct {
	Content   string `json:"content"`
	MountPath string `json:"mountPath"`
}

// renderTalos hands the stream to a system extension with the name machineadm, behind the documents of the user. The
// configuration of the machine itself is one of those.
func renderTalos(stream, extra []byte) ([]byte, error) {
	var out bytes.Buffer
	if extra != nil {
		out.Write(bytes.TrimRight(extra, "\n"))
		out.WriteString("\n---\n")
	}
	err := document.Encode(&out, talosExtension{
		APIVersion: "v1alpha1", Kind: "ExtensionServiceConfig", Name: "machineadm",
		ConfigFiles: []talosFile{{Content: string(stream), MountPath: nodePath}},
	})
	return out.Bytes(), err
}
