// Package serve is the HTTPS endpoint of the manager for machines: they get their document streams from it and send their reports
// to it, and it can hand out the files of signed releases. Nothing in it reads objects; a Backend does.
//
//	GET  /v1/data/NAMESPACE/NAME    the stream of a MachineBootstrapConfig
//	POST /v1/report/NAMESPACE/NAME  the report of a run, with Machineadm-Sequence: N
//	GET  /v1/release/FILE           a file of a directory, if one is given; without authorization
//
// The first two take Authorization: Bearer TOKEN, 256 bits as base64url without padding. A path has one spelling: there is no
// escape in it, and nothing is cleaned or redirected. Queries are ignored, and so is Range. The answers are those that
// plugins/remote-config/http expects:
//
//	200, 204  the stream or the file; the report is taken, or a newer one was
//	400       the report, or its number, is invalid; the body says why
//	401       there is no bearer of this form
//	403       there is no such config, or its stream is not for this bearer, or no longer: one answer for all
//	404, 405  another path; another method
//	408       the body came too slowly
//	413       the report is too large
//	429, 503  too many requests; the backend failed. Both with Retry-After
//	500       the backend panicked
//
// What a client can hold is bounded by Limits, before and after its authorization: connections in all and of one address, the time
// for a handshake with a header, for a body, and for each 64 KiB of an answer, the requests that a backend works on at once, the
// time that others wait for it, and denied requests of one address. Only a connection can wait, so those limits bound the waiting, too. The body of a report is not read before its bearer is known to be right. Every connection has one
// request, because machines send one; so there are no idle connections and nothing is pipelined.
//
// The address of a client is that of its connection, and a /64 for IPv6; no header changes it. Machines that share an address, for
// example behind a NAT or a Service with externalTrafficPolicy: Cluster, share its limits: one of them that floods the endpoint
// with wrong bearers delays the others, who are asked to try again.
//
// No log line, metric or answer has a bearer, a body, a query or an error of the backend.
package serve
