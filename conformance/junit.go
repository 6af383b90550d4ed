package conformance

import (
	"encoding/xml"
	"fmt"
)

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	At       string      `xml:"timestamp,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Seconds float64      `xml:"time,attr"`
	Failure *junitReason `xml:"failure"`
	Skipped *junitReason `xml:"skipped"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
}

// JUnit is the report in the XML that build servers read.
func (r Report) JUnit() (string, error) {
	suite := junitSuite{Name: "axiom conformance", Tests: len(r.Cases), Failures: r.Count(Failed), Skipped: r.Count(Skipped), At: r.StartedAt}
	for _, result := range r.Cases {
		c := junitCase{Class: "axiom.conformance", Name: result.Name + ": " + result.About, Seconds: result.Seconds}
		switch result.Status {
		case Failed:
			c.Failure = &junitReason{result.Message}
		case Skipped:
			c.Skipped = &junitReason{result.Message}
		}
		suite.Cases = append(suite.Cases, c)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode report: %w", err)
	}
	return xml.Header + string(text) + "\n", nil
}
