package forge

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/apitomy/axiom-operator/internal/effect"
	"github.com/apitomy/axiom-operator/internal/remotes"
)

// An Address names something on a forge.
type Address struct {
	// Forge has it.
	Forge remotes.Forge
	// Repository is owner/name.
	Repository string
	// Number of a pull request or an issue; 0 of a tracker.
	Number int64
}

var (
	repositoryForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}$`)
	pullForm       = regexp.MustCompile(`^/([^/]+/[^/]+)/pulls?/([1-9][0-9]{0,14})/?$`)
	issueForm      = regexp.MustCompile(`^/([^/]+/[^/]+)/issues/([1-9][0-9]{0,14})/?$`)
	trackerForm    = regexp.MustCompile(`^/([^/]+/[^/]+?)(?:/issues)?/?()$`)
)

// ParsePullRequestURL reads the URL of a pull request's page: a URL_INVALID, or a FORGE_UNKNOWN of a host that has no forge.
func ParsePullRequestURL(r *remotes.Remotes, text string) (Address, error) {
	return parseAddress(r, text, pullForm)
}

// ParseIssueURL reads the URL of an issue's page.
func ParseIssueURL(r *remotes.Remotes, text string) (Address, error) {
	return parseAddress(r, text, issueForm)
}

// ParseTrackerURL reads the URL of a repository, or of the list of its issues.
func ParseTrackerURL(r *remotes.Remotes, text string) (Address, error) {
	return parseAddress(r, text, trackerForm)
}

func parseAddress(r *remotes.Remotes, text string, form *regexp.Regexp) (Address, error) {
	u, err := remotes.CheckURL(text)
	if err != nil {
		return Address{}, urlInvalid(err.Error())
	}
	m := form.FindStringSubmatch(u.Path)
	if m == nil || u.RawQuery != "" || u.ForceQuery || u.RawPath != "" || !repositoryForm.MatchString(m[1]) {
		return Address{}, urlInvalid("is not the address of such a thing")
	}
	forge, err := r.ForgeOfURL(u)
	if err != nil {
		return Address{}, err
	}
	number := int64(0)
	if m[2] != "" {
		if number, err = strconv.ParseInt(m[2], 10, 64); err != nil {
			return Address{}, urlInvalid("has a number that is too large")
		}
	}
	return Address{Forge: forge, Repository: m[1], Number: number}, nil
}

// OfRepository is the address of the forge's side of a repository: LOCATOR_INVALID if its path is not owner/name.
func OfRepository(r *remotes.Remotes, l remotes.Locator) (Address, error) {
	forge, err := r.ForgeOf(l)
	if err != nil {
		return Address{}, err
	}
	if !repositoryForm.MatchString(l.Repository()) {
		return Address{}, &effect.Failure{Code: remotes.CodeLocatorInvalid, Message: "has a path that is not owner/name"}
	}
	return Address{Forge: forge, Repository: l.Repository()}, nil
}

// path is where the interface has a repository.
func (a Address) path() string { return "/repos/" + a.Repository }

// owner is the first part of the repository's name.
func (a Address) owner() string {
	owner, _, _ := strings.Cut(a.Repository, "/")
	return owner
}

// tracker is the one spelling of a tracker that keys are made of: forges take names in any case.
func (a Address) tracker() string {
	return strings.ToLower(a.Forge.Web + "/" + a.Repository)
}

// has tells whether a page is one of this repository.
func (a Address) has(page string) bool {
	u, err := url.Parse(page)
	return err == nil && strings.HasPrefix(strings.ToLower(u.Path), strings.ToLower("/"+a.Repository+"/"))
}

func urlInvalid(message string) error {
	return &effect.Failure{Code: remotes.CodeURLInvalid, Message: message}
}
