// Package kinds holds every form that a field of a document can have.
package kinds

import (
	"encoding/json"

	"example.com/elsewhere"
)

// The kinds.
const (
	KindLamp   = "Lamp"
	KindToCome = "ToCome"
)

// Header is left out.
type Header struct {
	// Name is told elsewhere.
	Name string `json:"name"`
}

// Lamp gives light. It needs a socket.
type Lamp struct {
	Header
	// Spec says which light.
	Spec LampSpec `json:"spec"`
}

// LampSpec is the light.
type LampSpec struct {
	Common
	// Bulbs are what shines, at least one. Each has a place of its own, as in lamps(5). Default: one of 60 W.
	Bulbs []Bulb `json:"bulbs"`
	// Colors maps a place to a color.
	Colors map[string]Color `json:"colors,omitempty"`
	// Password opens the socket.
	Password *Secret `json:"password,omitempty"`
	// Keys are more of them.
	Keys []Secret `json:"keys,omitempty"`
	// Dimmed says whether it is dimmed. Left out, the socket decides.
	Dimmed *bool `json:"dimmed,omitempty"`
	Level  int32 `json:"level,omitzero"` // Level is how bright it is.
	// Ratio of light and shade.
	Ratio float64 `json:"ratio,omitempty"`
	// Extra is read by the socket alone.
	Extra json.RawMessage `json:"extra,omitempty"`
	// Far comes from another package.
	Far elsewhere.Thing `json:"far,omitempty"`
	// Names are names of names.
	Names map[string][]string `json:"names,omitempty"`
	hidden string
	Left   string `json:"-"`
}

// Common stands in the place of its fields.
type Common struct {
	// Provider makes the light.
	Provider string `json:"provider,omitempty"`
}

// Bulb is one bulb.
type Bulb struct {
	// Place is where it is.
	Place string `json:"place"`
	// Behind are bulbs behind it.
	Behind []Bulb `json:"behind,omitempty"`
}

// Socket holds a bulb.
//
// +kubebuilder:validation:XValidation:rule="self.place != \"a\"",message="place is taken",fieldPath=".place"
type Socket struct {
	// Place is where it is.
	Place Word `json:"place"`
	// Watts is its power.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	Watts *int `json:"watts,omitempty"`
	// Base holds the bulb.
	//
	// +kubebuilder:validation:Enum=E14;"E 27"
	Base string `json:"base,omitempty"`
	// Tags are its names.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Tags []Word `json:"tags,omitempty"`
}

// Word has small letters.
//
// +kubebuilder:validation:Pattern=`^[a-z]+$`
type Word = string

// Color is a color of light.
type Color string

// The colors.
const (
	// Red is warm.
	Red  Color = "red"
	Blue Color = "blue" // Blue is cold.
)

// Secret is not shown.
type Secret struct{ data []byte }

// UnmarshalJSON reads it.
func (s *Secret) UnmarshalJSON([]byte) error { return nil }
