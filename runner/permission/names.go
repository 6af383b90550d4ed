package permission

import (
	"fmt"
	"regexp"
	"slices"
)

// Groups of a pattern that reads a tool's name from a title.
const (
	groupServer = "server"
	groupTool   = "tool"
)

// DefaultPatterns read titles of the forms that agents are known to write:
// mcp__server__tool, server__tool, server/tool, `tool (server MCP Server)` and
// the bare name of a tool that is built into the agent. Where one underscore is
// between server and tool, the name says no more which is which, unless the
// server is one of those given.
func DefaultPatterns(servers ...string) []string {
	const word = `[A-Za-z0-9](?:_?[A-Za-z0-9.-])*`
	patterns := []string{
		`mcp__(?P<server>` + word + `)__(?P<tool>[A-Za-z0-9_.-]+)`,
		`(?P<server>` + word + `)__(?P<tool>[A-Za-z0-9_.-]+)`,
		`(?P<server>` + word + `)/(?P<tool>[A-Za-z0-9_.-]+)`,
		`(?P<tool>[A-Za-z0-9_.-]+) \((?P<server>` + word + `) MCP Server\)`,
		`(?P<tool>[A-Z][A-Za-z]*)`,
	}
	for _, server := range servers {
		patterns = append(patterns, `(?P<server>`+regexp.QuoteMeta(server)+`)_(?P<tool>[A-Za-z0-9_.-]+)`)
	}
	return patterns
}

// Names reads the names of tools.
type Names struct {
	patterns []*regexp.Regexp
}

// NewNames compiles the patterns; without any, the default ones for the servers
// that the agent was given. A pattern has
// a group `tool`, may have a group `server`, and is held against the whole
// title: a name inside a longer text is not that text's name.
func NewNames(patterns []string, servers ...string) (Names, error) {
	if len(patterns) == 0 {
		patterns = DefaultPatterns(servers...)
	}
	var names Names
	for _, text := range patterns {
		pattern, err := regexp.Compile(`\A(?:` + text + `)\z`)
		if err != nil {
			return Names{}, fmt.Errorf("compile tool name pattern %q: %w", text, err)
		}
		if !slices.Contains(pattern.SubexpNames(), groupTool) {
			return Names{}, fmt.Errorf("tool name pattern %q has no group `%s`", text, groupTool)
		}
		names.patterns = append(names.patterns, pattern)
	}
	return names, nil
}

// Of returns the name of a tool: `_meta.toolName` where an agent sends it, or
// else what the first title that matches a pattern says. Empty means that the
// tool cannot be named. A toolName that is no text names nothing, whatever the
// titles say.
func (n Names) Of(meta map[string]any, titles ...string) string {
	if given, ok := meta["toolName"]; ok {
		name, _ := given.(string)
		return name
	}
	for _, title := range titles {
		if name := n.fromTitle(title); name != "" {
			return name
		}
	}
	return ""
}

func (n Names) fromTitle(title string) string {
	for _, pattern := range n.patterns {
		match := pattern.FindStringSubmatch(title)
		if match == nil {
			continue
		}
		tool, server := group(pattern, match, groupTool), group(pattern, match, groupServer)
		if tool == "" {
			continue
		}
		if server == "" {
			return tool
		}
		return "mcp__" + server + "__" + tool
	}
	return ""
}

func group(pattern *regexp.Regexp, match []string, name string) string {
	if i := pattern.SubexpIndex(name); i >= 0 {
		return match[i]
	}
	return ""
}
