package kubeadm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
)

const (
	version       = "v1.37.1"
	kubernetesDir = "/etc/kubernetes"
	kubeletDir    = "/var/lib/kubelet"
	etcdDir       = "/var/lib/etcd"
	manifestsDir  = kubernetesDir + "/manifests"

	// PaceFile holds how long the programs wait before each change of a file, as a Go duration. A second word limits that to
	// the file of this name. Without PaceFile they do not wait.
	PaceFile = "/etc/testenv-kubeadm"
	// LogFile has a line for each command that changes the machine: its arguments, and of a configuration the name of the node
	// and its CRI socket.
	LogFile = "/var/log/testenv-kubeadm"
	// waitLimit bounds the wait for the kubelet and for the control plane.
	waitLimit = 4 * time.Minute
)

var (
	errMissing = errors.New("there is no certificate")
	errUsage   = errors.New("unknown command")
)

// program is one run of kubeadm or of the kubelet.
type program struct {
	config configuration
	out    io.Writer
	pace   time.Duration
	at     string // the file that the pace is for, empty for each
}

// configuration has the fields of kubeadm's documents that matter here.
type configuration struct {
	NodeRegistration struct{ Name, CRISocket string }
	Discovery        struct {
		BootstrapToken struct {
			Token, APIServerEndpoint string
			CACertHashes             []string
		}
		File struct{ KubeConfigPath string }
	}
	BootstrapTokens      []struct{ Token string }
	CertificateKey       string
	ControlPlaneEndpoint string
	Patches              struct{ Directory string }
}

// Main is either program, by the name of the first argument, and returns its exit code.
func Main(argv []string, in io.Reader, out io.Writer) int {
	p := program{out: out}
	if text, err := os.ReadFile(local(PaceFile)); err == nil {
		words := append(strings.Fields(string(text)), "", "")
		if p.pace, err = time.ParseDuration(words[0]); err != nil {
			fmt.Fprintln(out, PaceFile, err)
			return 1
		}
		p.at = words[1]
	}
	name := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	if err := p.run(name, argv[1:], in); err != nil {
		fmt.Fprintln(out, "error: error execution phase", err)
		return 1
	}
	return 0
}

func (p *program) run(name string, args []string, in io.Reader) error {
	command := strings.Join(args, " ")
	switch {
	case name == "kubelet" && command == "--version":
		fmt.Fprintln(p.out, "Kubernetes "+version)
		return nil
	case name == "kubelet":
		return p.kubelet()
	case strings.HasPrefix(command, "version"):
		fmt.Fprintf(p.out, `{"clientVersion": {"gitVersion": %q}}`, version)
		return nil
	case strings.HasPrefix(command, "reset"):
		return errors.Join(p.log(command), p.reset(after(args, "--cert-dir")))
	}
	if err := p.read(after(args, "--config"), in); err != nil {
		return fmt.Errorf("preflight: %w", err)
	}
	r := p.config.NodeRegistration
	if err := p.log(command + " name=" + r.Name + " criSocket=" + r.CRISocket); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(command, "init phase addon all"):
		return p.addons()
	case args[0] == "init":
		return p.create()
	case args[0] == "join":
		return p.join()
	}
	return errUsage
}

// after returns the argument behind a flag.
func after(args []string, flag string) string {
	if at := slices.Index(args, flag) + 1; at > 0 && at < len(args) {
		return args[at]
	}
	return ""
}

// read reads the configuration, all of its documents.
func (p *program) read(file string, in io.Reader) error {
	var text []byte
	var err error
	if file == "/dev/stdin" {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(file)
	}
	for one := range strings.SplitSeq(string(text), "---\n") {
		if err == nil {
			err = decode(one, &p.config)
		}
	}
	return err
}

func decode(text string, into any) error {
	data, err := document.JSON("", []byte(text))
	if err != nil || len(data) == 0 {
		return err
	}
	return json.Unmarshal(data, into)
}

// local returns a path of this system: kubeadm for Windows uses the paths of Linux, on the system drive.
func local(path string) string {
	if runtime.GOOS == "windows" {
		return `C:` + filepath.FromSlash(path)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(local(path))
	return err == nil
}

// step prints what kubeadm prints in a phase.
func (p *program) step(phase, text string) { fmt.Fprintf(p.out, "[%s] %s\n", phase, text) }

// wait keeps the pace before a change of a file.
func (p *program) wait(path string) {
	if p.at == "" || p.at == filepath.Base(path) {
		time.Sleep(p.pace)
	}
}

// write writes a file as kubeadm does: in place.
func (p *program) write(path string, mode fs.FileMode, text []byte) error {
	p.wait(path)
	if err := os.MkdirAll(filepath.Dir(local(path)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(local(path), text, mode)
}

func (p *program) remove(path string) error {
	p.wait(path)
	return os.RemoveAll(local(path))
}

// clean removes what is in a directory, one after the other.
func (p *program) clean(dir string) error {
	entries, err := os.ReadDir(local(dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if err := p.remove(dir + "/" + entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) log(line string) error {
	if err := os.MkdirAll(filepath.Dir(local(LogFile)), 0o755); err != nil { //nolint:gosec // as everywhere
		return err
	}
	f, err := os.OpenFile(local(LogFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// service starts or stops the kubelet. Windows has none: its bootstrap is a part of this program.
func (p *program) service(verb string) error {
	if runtime.GOOS == "windows" {
		if verb == "start" {
			return p.bootstrap()
		}
		return nil
	}
	if text, err := exec.CommandContext(context.Background(), "systemctl", verb, "kubelet").CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s kubelet: %w: %s", verb, err, text)
	}
	return nil
}

// await waits for a condition.
func await(what string, met func() bool) error {
	for deadline := time.Now().Add(waitLimit); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: timed out", what)
		}
	}
	return nil
}
