package settings

import "github.com/machineadm/machineadm/contract/document"

// Directives returns all lines of providerConfig, the ones of sources and of clocks too.
func (s Settings) Directives() (all []Line) {
	for _, source := range s.Sources {
		if source.Line != "" {
			all = append(all, Line{source.Line, document.Path(source.Field)})
		}
	}
	for _, clock := range s.RefClocks {
		if clock.Line != "" {
			all = append(all, Line{clock.Line, document.Path(clock.Field)})
		}
	}
	return append(all, s.Lines...)
}
