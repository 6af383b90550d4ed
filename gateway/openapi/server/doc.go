// Package server is the serving half of the gateway's contract: it routes
// requests, reads their parameters and bodies, and writes answers. All but this
// file is generated from openapi.yaml.
package server
