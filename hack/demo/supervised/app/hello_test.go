package main

import (
	"net/http/httptest"
	"testing"
)

func TestHello(t *testing.T) {
	w := httptest.NewRecorder()
	routes().ServeHTTP(w, httptest.NewRequest("GET", "/hello", nil))
	if w.Code != 200 || w.Body.String() != "hello\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}
