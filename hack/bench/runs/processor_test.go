package main

import "testing"

func TestReadStat(t *testing.T) {
	const line = "42 (a ) b) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 6 7 20 0 9 0 1 2 3"
	parent, ticks, err := readStat(line)
	if err != nil || parent != "7" || ticks != 200 {
		t.Errorf("readStat() = %q, %d, %v, want parent 7 and 200 ticks", parent, ticks, err)
	}
	for _, text := range []string{"", "42 (a) S 7", "42 (a) S 7 42 42 0 -1 4194560 1 2 3 4 x 50 6"} {
		if _, _, err := readStat(text); err == nil {
			t.Errorf("readStat(%q) does not fail", text)
		}
	}
}

func TestProcessorTimeOfNoChildren(t *testing.T) {
	if used, err := processorTime(); err != nil || used != 0 {
		t.Errorf("processorTime() = %s, %v, want none of nobody", used, err)
	}
}
