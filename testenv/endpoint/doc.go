// Package endpoint tries the endpoint of the manager (host/controller/serve) with the programs that use it: the plugin of RemoteConfig
// documents, and the installer.
package endpoint
