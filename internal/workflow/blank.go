package workflow

// Blank is the workflow an author begins with: a start that leads to an end. Its id is its name.
func Blank(name string) Document {
	return Document{
		"id":   name,
		"name": name,
		"nodes": []any{
			map[string]any{"id": "start-1", "type": string(KindStart), "name": "Start", "config": map[string]any{"inputs": []any{}}},
			map[string]any{"id": "end-1", "type": string(KindEnd), "name": "End", "config": map[string]any{}},
		},
		"edges": []any{
			map[string]any{"id": "edge-1", "source": "start-1", "target": "end-1", "priority": int64(0), "isDefault": true},
		},
	}
}
