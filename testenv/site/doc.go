// Package site tests the web site of the documentation, which make site builds from the pages of the checkout: its links, and its pages in a
// browser.
package site

//machineadm:tier system
