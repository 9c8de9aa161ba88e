package process

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// ContractError returns the error as one of the contract, or nil.
func ContractError(err error) *pluginv1.Error {
	var e *pluginv1.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// ClauseOf returns the clause that the client found violated, else the other one.
func ClauseOf(err error, other string) string {
	if e := ContractError(err); e != nil && e.Clause != "" {
		return e.Clause
	}
	return other
}

// AboutClaims reports whether the client found the claims of an answer against the contract.
func AboutClaims(err error) bool {
	return slices.Contains([]string{"P-32", "P-33", "P-34"}, ClauseOf(err, ""))
}

// CauseOf returns the likely cause of an error that the plugin does not mean to answer.
func CauseOf(err error, other string) string {
	e := ContractError(err)
	switch {
	case e != nil && e.Clause != "":
		return "the message is built against " + e.Clause + "; plugin.proto has the fields and their rules"
	case e != nil && e.Code == pluginv1.CodeInternal:
		return "an exception or a panic in the plugin that its server answers"
	}
	return other
}

// WrongAnswer returns what is wrong with an answer that must be an error with one of these codes, or "".
func WrongAnswer(err error, allowed ...pluginv1.Code) string {
	var names []string
	for _, code := range allowed {
		names = append(names, code.String())
	}
	want := strings.Join(names, " or ")
	e := ContractError(err)
	switch {
	case err == nil:
		return "succeeded instead of answering " + want
	case e == nil || !slices.Contains(allowed, e.Code):
		return fmt.Sprintf("answered %q instead of %s", err, want)
	}
	return ""
}
