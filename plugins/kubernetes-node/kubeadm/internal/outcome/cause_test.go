package outcome

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// TestCause: the detail begins with the line that explains the failure. That of a program of the machine counts only when kubeadm
// has waited for it.
func TestCause(t *testing.T) {
	t.Parallel()
	cause := func(r Run, text string) string {
		o := New(NewRedactor())
		read(o, text)
		r.Command, r.Err = "init", errExit
		e := pluginv1.AsError(o.Failure(r))
		assert.NotContains(t, e.Error(), "decisive")
		assert.Contains(t, e.Detail, text)
		first, _, _ := strings.Cut(e.Detail, "\n\n")
		return first
	}
	program := Run{Cause: "etcd: decisive", Pods: ": etcd ends with exit code 1"}
	const waiting = "error: error execution phase wait-control-plane: failed while waiting: decisive, of kubeadm"
	assert.Equal(t, "cause: etcd: decisive", cause(program, waiting))
	assert.Equal(t, "cause: kubelet: decisive", cause(Run{Cause: "kubelet: decisive"}, waiting))
	assert.Equal(t, "cause: failed while waiting: decisive, of kubeadm", cause(Run{}, waiting))
	assert.Equal(t, "cause: it is decisive", cause(program, "\t[ERROR Mem]: it is decisive\nerror: error execution phase preflight: preflight checks failed"))
	assert.Equal(t, "cause: decisive", cause(Run{Cause: "kubelet: no"}, "error execution phase preflight: decisive\nsee the stack"))
	assert.Equal(t, "cause: decisive", cause(Run{Cause: "kubelet: no"}, "error execution phase preflight:\n\ndecisive"))
	assert.NotContains(t, cause(Run{}, "[preflight] Running"), "cause")
}

// TestLastError has the forms of kube-apiserver, the kubelet in the journal, etcd and runc.
func TestLastError(t *testing.T) {
	t.Parallel()
	const (
		log     = "2026-11-23T00:01:02.123456789Z stderr F "
		journal = "2026-11-23T00:01:02+00:00 n kubelet[7]: "
		systemd = "2026-11-23T00:01:02+00:00 n systemd[1]: "
		klog    = "1123 00:01:02.123456       1 run.go:72] "
	)
	for _, c := range [][2]string{
		{"", ""},
		{"\n\n", ""},
		{"one\n two \n\n", "two"},
		{log + "E" + klog + `"command failed" err="loading \"a\""` + "\n", `command failed: loading "a"`},
		{log + "Usage:\n" + log + "  --etcd-servers strings  \n" + log + "\n" + log + "Error: unknown flag: --x\n", "Error: unknown flag: --x"},
		{journal + "E" + klog + `"command failed" err="bad"` + "\n" + systemd + "kubelet.service: Failed with result 'exit-code'.\n", "command failed: bad"},
		{systemd + "kubelet.service: Failed with result 'exit-code'.\n", "kubelet.service: Failed with result 'exit-code'."},
		{log + `{"level":"fatal","ts":"2026","msg":"discovery failed","error":"no such host"}` + "\nInfo: bye", "discovery failed: no such host"},
		{`{"level":"warn","msg":"failed to verify flags","error":"bad"}`, "failed to verify flags: bad"},
		{`{"level":"fatal","msg":"it fails"}` + "\n" + `{"level":"info","msg":"closing"}`, "it fails"},
		{"I" + klog + `"listening" port=1`, "listening: port=1"},
		{"F" + klog + "plain\nW" + klog + "later", "plain"},
		{log + "flag provided but not defined: -x\n" + log + "Usage:\n" + log + "  etcd [flags]", "flag provided but not defined: -x"},
		{"panic: no\tvalue\n\ngoroutine 1 [running]:\nmain.main()", "panic: no value"},
		{`failed to create containerd task: exec: "/x": no such file`, `failed to create containerd task: exec: "/x": no such file`},
	} {
		assert.Equal(t, c[1], LastError(c[0]), c[0])
	}
	long := LastError("E1123 00:01:02.1 1 a.go:1] begin" + strings.Repeat("ü", 1000) + "end")
	assert.Len(t, []rune(long), maxCause+len(" ... "))
	assert.True(t, strings.HasPrefix(long, "begin") && strings.HasSuffix(long, "end"), long)
}

// TestLastErrorOfSystemd: systemd writes the last lines of every journal, and they say why only of a program that did not end by itself.
func TestLastErrorOfSystemd(t *testing.T) {
	t.Parallel()
	const (
		result  = "kubelet.service: Failed with result 'exit-code'.\n"
		exited  = "kubelet.service: Main process exited, code=exited, status=1/FAILURE\n"
		again   = "systemd[1]: kubelet.service: Scheduled restart job, restart counter is at 3.\nsystemd[1]: Stopped kubelet.service - kubelet.\nsystemd[1]: Started kubelet.service - kubelet.\n"
		library = "/usr/bin/kubelet: error while loading shared libraries: libseccomp.so.2: cannot open shared object file: No such file or directory"
	)
	for name, c := range map[string][2]string{
		"a message without a form": {"kubelet[7]: out of order\nsystemd[1]: " + exited + "systemd[1]: " + result + again, "out of order"},
		"a library":                {"kubelet[7]: " + library + "\nsystemd[1]: " + exited + "systemd[1]: " + result, library},
		"a script's shell":         {"sh[7]: sh: 1: kubelet: not found\nsystemd[1]: " + exited + "systemd[1]: " + result, "sh: 1: kubelet: not found"},
		"another architecture": {
			"(kubelet)[7]: kubelet.service: Failed at step EXEC spawning /usr/bin/kubelet: Exec format error\nsystemd[1]: " + exited + "systemd[1]: " + result + again,
			"kubelet.service: Failed at step EXEC spawning /usr/bin/kubelet: Exec format error",
		},
		"an absent program": {
			"systemd[7]: kubelet.service: Failed to execute /usr/bin/kubelet: No such file or directory\nsystemd[1]: " + exited + "systemd[1]: " + result,
			"kubelet.service: Failed to execute /usr/bin/kubelet: No such file or directory",
		},
		"an absent file of variables": {
			"systemd[1]: kubelet.service: Failed to load environment files: No such file or directory\nsystemd[1]: kubelet.service: Failed to run 'start' task: No such file or directory\n" +
				"systemd[1]: kubelet.service: Failed with result 'resources'.\n",
			"kubelet.service: Failed to load environment files: No such file or directory",
		},
		"memory": {
			"kubelet[7]: I1123 00:01:02.1 1 a.go:1] \"listening\"\nsystemd[1]: kubelet.service: A process of this unit has been killed by the OOM killer.\n" +
				"systemd[1]: kubelet.service: Main process exited, code=killed, status=9/KILL\nsystemd[1]: kubelet.service: Failed with result 'oom-kill'.\n" + again,
			"kubelet.service: A process of this unit has been killed by the OOM killer.",
		},
		"a signal": {
			"kubelet[7]: I1123 00:01:02.1 1 a.go:1] \"listening\"\nsystemd[1]: kubelet.service: Main process exited, code=dumped, status=11/SEGV\n",
			"kubelet.service: Main process exited, code=dumped, status=11/SEGV",
		},
		"a time limit": {
			"systemd[1]: kubelet.service: start operation timed out. Terminating.\nsystemd[1]: kubelet.service: Failed with result 'timeout'.\n",
			"kubelet.service: start operation timed out. Terminating.",
		},
		"an earlier signal": {
			"systemd[1]: kubelet.service: Main process exited, code=killed, status=9/KILL\nsystemd[1]: Started kubelet.service - kubelet.\n" +
				"kubelet[7]: out of order\nsystemd[1]: " + exited + again, "out of order",
		},
		"nothing":         {"systemd[1]: " + exited + "systemd[1]: " + result + again, strings.TrimSpace(result)},
		"only the starts": {again, "Started kubelet.service - kubelet."},
	} {
		log := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(c[0], "2026-11-23T00:01:02+00:00 n $1")
		assert.Equal(t, c[1], LastError(log), name)
	}
}

func TestOfKubelet(t *testing.T) {
	t.Parallel()
	const sync, noise = "E1123 1 1 a.go:1] \"Error syncing pod, skipping\" err=\"no image\"\n", "E1123 1 1 a.go:1] \"no node yet\"\n"
	assert.Equal(t, sync, OfKubelet(noise+sync+noise, false))
	assert.Empty(t, OfKubelet(noise, false))
	assert.Equal(t, noise+sync, OfKubelet(noise+sync, true))
	const ended = noise + "kubelet.service: Main process exited, code=exited, status=1/FAILURE\n"
	assert.Equal(t, ended, OfKubelet(ended, false))
}

func FuzzLastError(f *testing.F) {
	f.Add("E1123 00:01:02.1 1 a.go:1] \"a\" err=\"b\\n\"")
	f.Add(`{"level":"fatal","msg":"a","error":"b"}`)
	f.Fuzz(func(t *testing.T, log string) {
		if line := LastError(log); strings.ContainsAny(line, "\n\r") || len([]rune(line)) > maxCause+5 {
			t.Errorf("%q", line)
		}
	})
}
