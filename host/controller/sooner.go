package controller

import ctrl "sigs.k8s.io/controller-runtime"

// sooner is the one of two results whose time comes first.
func sooner(a, b ctrl.Result) ctrl.Result {
	if a.RequeueAfter == 0 || b.RequeueAfter != 0 && b.RequeueAfter < a.RequeueAfter {
		return b
	}
	return a
}
