// Greeter says hello over HTTP.
package main

import (
	"log"
	"net/http"
)

func main() {
	log.Fatal(http.ListenAndServe(":8080", routes()))
}
