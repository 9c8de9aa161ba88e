// Package files reads what the Timesync plugins render with Augeas, whose lenses are the work of others, and compares it with
// the documents of the conformance cases.
//
// The lenses of Augeas 1.14 do not have everything: that of chronyd lacks leapseclist, and that of ntpd lacks nts, refclock and
// tos minclock; neither reads CRLF. The test removes these. Of them the plugins render nts and refclock of ntpd alone.
package files
