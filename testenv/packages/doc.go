// Package packages installs what installer/release makes: with apt on booted nodes, with rpm, dnf, zypper and pacman on Debian's
// userland, as a system extension, and under wine. No Fedora, Arch, Alpine or Windows runs here.
//
// The programs within are few and small, because the packages of all of them differ in nothing but time.
package packages
