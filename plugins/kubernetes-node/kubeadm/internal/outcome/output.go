// Package outcome reads what kubeadm prints: progress while it runs, and the cause when it fails.
package outcome

import (
	"regexp"
	"strings"
)

// maxTail bounds the output that is kept for the administrator, in bytes.
const maxTail = 24 << 10

// Output is the output of one run of kubeadm. Give it every line; it is for one goroutine.
type Output struct {
	redact Redactor
	// warns matches klog's header, or a check's; last the line that begins the error, or the advice for people.
	warns, last *regexp.Regexp
	colors      *regexp.Regexp // as machine.Command escapes them
	passed      *regexp.Regexp // a check of the system that is green
	words       map[string]string
	prefix      string // of the last line that had one
	said        string // the last progress
	ended       bool   // what follows is advice for people, or the error
	tail        []string
	bytes       int
}

// New returns an Output without lines.
func New(redact Redactor) *Output {
	return &Output{
		redact: redact, words: doing(),
		warns:  regexp.MustCompile(`^(?:[WEF]\d{4} \S+ +\d+ \S+\] |\[WARNING (?:[\w.-]+)\]: )(.*)`),
		colors: regexp.MustCompile(`\\x1b\[[0-9;]*m`),
		passed: regexp.MustCompile(`^\\x1b\[0;37m[^\\]*\\x1b\[0m: \\x1b\[0;32m`),
		last: regexp.MustCompile(`^error( execution phase|:) |fatal errors occurred` +
			`|^Your Kubernetes control|^This node has joined|^The reset process`),
	}
}

// Line reads a line and returns what to show of it, empty for nothing new. A line that it does not know is shown.
func (o *Output) Line(line string) string {
	passed := o.passed.MatchString(line)
	line = o.redact.Text(strings.TrimRight(o.colors.ReplaceAllString(line, ""), " \t\r"))
	o.keep(line)
	prefix, text := split(line)
	warning := o.warns.FindStringSubmatch(text)
	words := o.words[prefix]
	switch {
	case o.last.MatchString(line):
		o.ended = true
		return ""
	case o.ended, text == "", prefix == "patches", passed:
		return ""
	case warning != nil:
		return "kubeadm warns: " + warning[1]
	case strings.HasPrefix(text, "Pulling images"):
		return "pulling the images of the control plane"
	case words == "":
		return "kubeadm: " + line
	}
	o.prefix = prefix
	if words == o.said {
		return ""
	}
	o.said = words
	return words
}

// Text returns the end of the output, redacted.
func (o *Output) Text() string { return strings.Join(o.tail, "\n") }

func (o *Output) keep(line string) {
	o.tail = append(o.tail, line)
	for o.bytes += len(line) + 1; o.bytes > maxTail && len(o.tail) > 1; o.tail = o.tail[1:] {
		o.bytes -= len(o.tail[0]) + 1
	}
}

// split separates the prefix in brackets, which names a phase or a part of one.
func split(line string) (prefix, text string) {
	text = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(text, "["); ok {
		name, after, found := strings.Cut(rest, "] ")
		if found && !strings.ContainsAny(name, " []") {
			return name, strings.TrimSpace(after)
		}
	}
	return "", text
}

// doing says what kubeadm does in lines of a prefix. Several prefixes of one phase have the same words.
func doing() map[string]string {
	const (
		prepare   = "checking the machine"
		discovery = "finding the cluster"
		kubelet   = "starting the kubelet"
		control   = "waiting for the control plane"
		upload    = "storing the configuration in the cluster"
	)
	return map[string]string{
		"init": prepare, "preflight": prepare, "config": prepare, "endpoint": prepare, "discovery": discovery,
		"certs": "creating certificates", "certificates": "creating certificates", "download-certs": "downloading certificates",
		"kubeconfig": "creating kubeconfig files", "control-plane": "writing the manifests of the control plane",
		"componentconfig": "writing the configuration of the kubelet",
		"etcd":            "setting up etcd", "check-etcd": "checking etcd",
		"kubelet-start": kubelet, "kubelet-check": kubelet, "kubelet-finalize": "finishing the configuration of the kubelet",
		"wait-control-plane": control, "control-plane-check": control, "control-plane-join": "joining the control plane",
		"upload-config": upload, "kubelet": upload, "upload-certs": "storing the certificates in the cluster",
		"mark-control-plane": "marking the node as a control plane", "bootstrap-token": "creating the bootstrap token",
		"addons": "installing the add-ons", "reset": "removing what an unfinished run left",
	}
}
