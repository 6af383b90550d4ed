package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// effects count what the processes of one play created, by resource and name.
type effects struct {
	mu      sync.Mutex
	created map[string]int
}

func (e *effects) add(url string, body []byte) {
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil || object.Metadata.Name == "" {
		return // subresources answer with other things
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.created == nil {
		e.created = map[string]int{}
	}
	e.created[path.Base(url)+"/"+object.Metadata.Name]++
}

// list tells what was created how often, as lines that are the same for each
// play in which the same was created.
func (e *effects) list(namespace string, counts func(resource string) bool) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for _, created := range slices.Sorted(maps.Keys(e.created)) {
		resource, _, _ := strings.Cut(created, "/")
		if counts != nil && !counts(resource) {
			continue
		}
		line := word(created, namespace)
		if n := e.created[created]; n > 1 {
			line += fmt.Sprintf(", %d times", n)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
