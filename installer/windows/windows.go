// Package windows has the description of the Windows installer.
package windows

import _ "embed" // the template

// Installer is a template (text/template) of a WiX source for wixl. Its data has Version, ProductCode, Dirs and Components.
//
//go:embed machineadm.wxs
var Installer string

// Queries are what wixl cannot write, as SQL of the installer's database: the directory of the programs on PATH, and access to
// the state for SYSTEM and Administrators alone.
//
//go:embed machineadm.sql
var Queries string
