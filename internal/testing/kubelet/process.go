package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// descendants are the processes that a process started, and those that they did.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is a valid one
	for _, stat := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		if err != nil {
			continue
		}
		if parent, isThere := parentOf(stat); isThere {
			children[parent] = append(children[parent], child)
		}
	}
	var all []int
	for next := children[pid]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}

// parentOf reads the parent from a process's status; false if it has ended.
func parentOf(stat string) (int, bool) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return 0, false
	}
	// The name, in parentheses, may have anything in it.
	_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	var state string
	var parent int
	if _, err := fmt.Sscan(rest, &state, &parent); err != nil {
		return 0, false
	}
	return parent, true
}
