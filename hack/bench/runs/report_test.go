package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sampleReport() *report {
	r := newReport("bench-runs", false)
	r.add(
		figure{measure: "a <b> measure", goal: "≤ 1.5×", limit: 1.5, ratio: 1.2, value: "1.20×", raw: "4 ms"},
		figure{measure: "another", goal: "≥ 0.8", limit: 0.8, ratio: 0.4, atLeast: true, value: "0.40"},
		figure{measure: "nothing", goal: "0", value: "0"},
		figure{measure: "something", goal: "0", ratio: 1, value: "1"},
		figure{measure: "to read", noGoal: true, value: "x"},
	)
	return r
}

func TestReportIsWrittenBetweenItsMarkers(t *testing.T) {
	dir := t.TempDir()
	document, plot := filepath.Join(dir, "p.md"), filepath.Join(dir, "images", "p.svg")
	markBegin, markEnd := sampleReport().marks()
	before := "# Performance\n" + markBegin + "\nold\n" + markEnd + "\nafter\n"
	if err := os.WriteFile(document, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sampleReport().write(document, plot); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if strings.Contains(text, "old") || !strings.HasPrefix(text, "# Performance\n"+markBegin) || !strings.HasSuffix(text, markEnd+"\nafter\n") {
		t.Errorf("the document is now:\n%s", text)
	}
	for _, line := range []string{
		"| a <b> measure | ≤ 1.5× | 1.20× | 4 ms | met |", "| another | ≥ 0.8 | 0.40 |  | **missed** |",
		"| nothing | 0 | 0 |  | met |", "| something | 0 | 1 |  | **missed** |", "| to read |  | x |  |  |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the document lacks %q:\n%s", line, text)
		}
	}
	drawn, err := os.ReadFile(plot)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(string(drawn)))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the plot is no XML: %v\n%s", err, drawn)
		}
	}
	if met, missed := strings.Count(string(drawn), `class="met"`), strings.Count(string(drawn), `class="missed"`); met != 2 || missed != 2 {
		t.Errorf("the plot shows %d goals met and %d missed, want 2 and 2", met, missed)
	}
}

func TestReportNeedsItsMarkers(t *testing.T) {
	markBegin, markEnd := sampleReport().marks()
	for _, text := range []string{"", markBegin, markEnd + markBegin} {
		if _, err := sampleReport().between(text, "x"); err == nil {
			t.Errorf("between(%q) found markers", text)
		}
	}
}

func TestPercentiles(t *testing.T) {
	var p paired
	for i := 1; i <= 100; i++ {
		p.add(time.Duration(2*i), time.Duration(i))
	}
	if p.ratio(50) != 2 || p.ratio(99) != 2 || p.ratioOfPairs() != 2 {
		t.Errorf("ratios are %v, %v and %v, want 2", p.ratio(50), p.ratio(99), p.ratioOfPairs())
	}
	if got := percentile(nil, 99); got != 0 {
		t.Errorf("percentile of nothing is %v", got)
	}
	if got := percentile(p.raw, 99); got != 100 {
		t.Errorf("the 99th percentile of 1 to 100 is %v", got)
	}
}

func TestRequestKey(t *testing.T) {
	for path, want := range map[string]string{
		"/apis/axiom.apitomy.io/v1alpha1/namespaces/n/workflowruns/r/status": "GET workflowruns/status",
		"/apis/axiom.apitomy.io/v1alpha1/namespaces/n/humantasks":            "GET humantasks",
		"/api/v1/namespaces/n/pods/p":                                        "GET pods",
		"/api/v1/namespaces/n":                                               "GET namespaces",
		"/apis/axiom.apitomy.io/v1alpha1/humantasks?watch=true":              "WATCH humantasks",
		"/apis": "GET discovery",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://host"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if got := requestKey(req); got != want {
			t.Errorf("requestKey(%s) = %q, want %q", path, got, want)
		}
	}
}

func TestUnknownRowsAreRefused(t *testing.T) {
	var out strings.Builder
	if code := run(t.Context(), []string{"--rows", "nothing"}, io.Discard, &out); code != 2 || !strings.Contains(out.String(), "there is no row") {
		t.Errorf("exit code %d with %q", code, out.String())
	}
}
