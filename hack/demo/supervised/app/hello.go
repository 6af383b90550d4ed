package main

import (
	"io"
	"net/http"
)

func hello(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "hello\n")
}
