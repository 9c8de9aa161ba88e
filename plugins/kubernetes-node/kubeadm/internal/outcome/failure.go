package outcome

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Run is how a run of kubeadm ended.
type Run struct {
	// Command is init, join or reset.
	Command string
	// Endpoint is the HOST:PORT of the API server, for the remedies.
	Endpoint string
	// Err is the failure of the command.
	Err error
	// Duration is the time that it took.
	Duration time.Duration
	// Facts are further facts for programs.
	Facts map[string]string
	// Pods says what containers of the control plane do not run, empty for nothing.
	Pods string
	// Cause is the line of a container or of the kubelet that explains the failure, redacted.
	Cause string
	// Safe reports whether kubeadm may run again after what it left. Nil means that it may not.
	Safe func() bool
	// Detail is output of other programs for the administrator, redacted.
	Detail string
}

// lastError is the error at the end of kubeadm's output. A cause that kubeadm overcame can come before.
func lastError(text string) string { return text[max(0, strings.LastIndex(text, "\nerror")):] }

// Failure classifies a run that failed. It is a Retry after one request without an answer, if to run again is safe. What else
// kubeadm says is the same a minute later.
func (o *Output) Failure(r Run) error {
	text := o.Text()
	command, _ := errors.AsType[*machine.CommandError](r.Err)
	phase := o.phase(text)
	checks := failedChecks(text)
	facts := map[string]string{"command": r.Command, "phase": phase, "duration": r.Duration.Round(time.Second).String()}
	if command != nil && command.ExitCode >= 0 {
		facts["exitCode"] = strconv.Itoa(command.ExitCode)
	}
	facts["failedChecks"] = strings.Join(checks, ",")
	maps.DeleteFunc(facts, func(_, value string) bool { return value == "" })
	maps.Copy(facts, r.Facts)
	where := "kubeadm " + r.Command
	if phase != "" {
		where += " failed in the phase " + phase
	} else {
		where += " failed"
	}
	var err error
	switch {
	case errors.Is(r.Err, context.DeadlineExceeded), errors.Is(r.Err, machine.ErrTimeout):
		err = sdk.Precondition(where+": the time limit of the document has passed"+r.Pods,
			"see the output of kubeadm in details.json; allow more time with metadata.timeout, then run again")
	case command != nil && command.Signal != "":
		err = sdk.Precondition(where+": it was ended by the signal "+command.Signal, "find out what ended it, then run again")
	case len(checks) > 0:
		err = preflight(where, checks)
	default:
		err = classify(where, text, r)
		if r.Pods == "" && r.Safe != nil && unanswered(text) && r.Safe() {
			err = sdk.Retry(0, where+": a request got no answer")
		}
	}
	cause := o.cause(text)
	if r.Cause != "" && len(checks) == 0 && (r.Pods != "" || phase == "wait-control-plane" || strings.HasPrefix(phase, "kubelet-")) {
		cause = r.Cause // kubeadm has only waited
	}
	return sdk.WithFacts(sdk.WithDetail(err, Detail(cause, text+"\n\n"+r.Detail)), facts)
}

// Detail is the detail of an error: output of programs, with its cause first if that is known.
func Detail(cause, text string) string {
	text = strings.Trim(text, "\n")
	if cause != "" {
		text = pluginv1.CausePrefix + cause + "\n\n" + text
	}
	return text
}

// unanswered reports whether kubeadm gave up because the API server or etcd did not answer one request in time. What kubeadm has
// waited for by itself is no such request: it was not there for minutes.
func unanswered(text string) bool {
	const (
		waited = `failed while waiting|couldn't (?:initialize a Kubernetes cluster|validate the identity of the API Server)` +
			`|phase (?:wait-control-plane|check-etcd|etcd-join|control-plane-join/etcd): |etcd cluster is not healthy`
		request = `context deadline exceeded|Client\.Timeout exceeded|client rate limiter Wait|i/o timeout|TLS handshake timeout` +
			`|connection refused|connection reset by peer|\bEOF\b|http2: |etcdserver: ` +
			`|unable to return a response in the time allotted|currently unable to handle the request`
	)
	last := lastError(text)
	return regexp.MustCompile(request).MatchString(last) && !regexp.MustCompile(waited).MatchString(last)
}

// phase returns the phase that failed, in kubeadm's words; empty before the first one.
func (o *Output) phase(text string) string {
	const pattern = `(?m)^(?:error: )?error execution (?:run condition for )?phase ([a-z0-9/-]+)`
	named := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if named != nil {
		return named[1]
	}
	return o.prefix
}

// failedChecks returns the names of the preflight checks that failed.
func failedChecks(text string) []string {
	var all []string
	for _, match := range regexp.MustCompile(`(?m)^\s*\[ERROR ([\w.-]{1,100})\]: `).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(all, match[1]) {
			all = append(all, match[1])
		}
	}
	return all
}

// preflight reports every failed check, with the cause and the remedy of those that are known.
func preflight(where string, checks []string) error {
	var violations []sdk.Violation
	var messages []string
	for _, name := range checks {
		v := sdk.Violation{
			Message: "the check " + name + " failed",
			Hint:    "see the output of kubeadm in details.json; or name the check in spec.ignorePreflightErrors",
		}
		for _, known := range knownChecks() {
			if rest, ok := strings.CutPrefix(name, known.prefix); ok {
				v.Message, v.Hint = name+": "+strings.ReplaceAll(known.message, "%", rest), known.hint
				break
			}
		}
		violations, messages = append(violations, v), append(messages, v.Message)
	}
	e := pluginv1.AsError(sdk.Preconditions(violations...))
	e.Message, e.Hint = where+": "+strings.Join(messages, "; "), violations[0].Hint
	return e
}

// classify finds the cause in the output.
func classify(where, text string, r Run) error {
	last := lastError(text)
	for _, c := range slices.Concat(ofTheCluster(), ofTheMachine()) {
		if !regexp.MustCompile(c.pattern).MatchString(last) {
			continue
		}
		if c.hint == defect {
			return &pluginv1.Error{Code: pluginv1.CodeInternal, Message: where + ": " + c.message}
		}
		err := sdk.Precondition(where+": "+c.message+r.Pods, strings.ReplaceAll(c.hint, "ENDPOINT", cmp.Or(r.Endpoint, "ENDPOINT")))
		if c.field != "" {
			err = sdk.At(err, c.field)
		}
		return err
	}
	return sdk.Precondition(where+cmp.Or(r.Pods, ": "+exit(r.Err)), "see the output of kubeadm in details.json")
}

func exit(err error) string {
	if command, ok := errors.AsType[*machine.CommandError](err); ok && command.ExitCode >= 0 {
		return "exit code " + strconv.Itoa(command.ExitCode)
	}
	return err.Error()
}
