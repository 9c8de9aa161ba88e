package values

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
)

// TestErrorsInLineOrder: codes come by precedence, and each code in line order.
func TestErrorsInLineOrder(t *testing.T) {
	t.Parallel()
	r := report.Report{
		Errors: []report.Error{
			{Code: report.CodeNoPlugin, Line: 1},
			{Code: "InvalidConfig", Line: 9, Column: 3},
			{Code: "InvalidConfig", Line: 9, Column: 1},
			{Code: report.CodeDeadline},
			{Code: "InvalidConfig", Line: 4},
		},
		Documents: []report.Document{{Errors: []int{0}}, {Errors: []int{1, 2}}, {}, {Errors: []int{4}}},
	}
	sortErrors(&r)
	assert.Equal(t, []report.Error{
		{Code: "InvalidConfig", Line: 4},
		{Code: "InvalidConfig", Line: 9, Column: 1},
		{Code: "InvalidConfig", Line: 9, Column: 3},
		{Code: report.CodeDeadline},
		{Code: report.CodeNoPlugin, Line: 1},
	}, r.Errors)
	assert.Equal(t, []report.Document{{Errors: []int{4}}, {Errors: []int{1, 2}}, {}, {Errors: []int{0}}}, r.Documents)
}
