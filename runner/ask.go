package runner

import "github.com/apitomy/axiom-operator/runner/permission"

// ask tells of a permission request, and returns the call it is about.
func (t *transcript) ask(request permissionRequest) permission.Call {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.flush()
	asked := request.ToolCall
	call := permission.Call{Input: asked.RawInput}
	titles := []string{asked.Title}
	meta := firstMeta(asked.Meta, request.Meta)
	earlier, known := t.turn.calls[asked.ToolCallID]
	if known {
		if meta == nil && !earlier.done {
			meta = earlier.declared // no title speaks against it
		}
		titles = append(titles, earlier.title)
		if call.Input == nil {
			call.Input = earlier.input
		}
		if !earlier.hasInput() {
			earlier.input = call.Input
		}
		t.tellCall(earlier)
	}
	call.Name = t.names.Of(meta, titles...)
	if call.Name == "" && known && meta == nil {
		call.Name = earlier.name
	}
	shown := toolCall{name: call.Name, title: asked.Title}
	t.emit(eventPermissionRequest, map[string]any{
		"requestId": asked.ToolCallID, "toolName": shown.shown(), "toolInput": call.Input,
	})
	return call
}

// firstMeta returns the first that names a tool, or nil.
func firstMeta(metas ...map[string]any) map[string]any {
	for _, meta := range metas {
		if _, ok := meta["toolName"]; ok {
			return meta
		}
	}
	return nil
}

// resolve tells how a permission request was answered.
func (t *transcript) resolve(id string, allowed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.emit(eventPermissionResolved, map[string]any{"permissionId": id, "allow": allowed})
}
