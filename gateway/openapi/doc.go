// Package openapi is the contract of the gateway in Go: the types of its
// requests and answers, and a client that does one call. All but this file is
// generated from openapi.yaml, the server's half into the package server.
//
// It knows nothing of Kubernetes, and needs little enough to go into the small
// binaries that run inside pods.
package openapi
