package fragment

// Members of the document.
const (
	memberOperations = "operations"
	memberPath       = "path"
	memberContent    = "content"
	memberExecutable = "executable"
	memberInclude    = "include"
	memberExclude    = "exclude"
)

// An entry is an operation of which only the kind was looked at.
type entry struct {
	kind string
	// value is what the kind stands before.
	value any
}

// readEntries takes the document apart into operations of known kinds.
func readEntries(value any) ([]entry, *Refusal) {
	document, _ := value.(map[string]any)
	list, _ := document[memberOperations].([]any)
	if len(document) != 1 || len(list) == 0 || len(list) > MaxOperations {
		return nil, refuse(CodeMalformed, -1)
	}
	entries := make([]entry, 0, len(list))
	for i, item := range list {
		e, ok := readEntry(item)
		if !ok {
			return nil, refuse(CodeMalformed, i)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func readEntry(item any) (entry, bool) {
	object, _ := item.(map[string]any)
	if len(object) != 1 {
		return entry{}, false
	}
	for kind, value := range object { // the only one
		_, isKnown := classes[kind]
		return entry{kind: kind, value: value}, isKnown
	}
	return entry{}, false
}

// readOperations reads the members of each operation.
func readOperations(entries []entry) ([]Operation, *Refusal) {
	operations := make([]Operation, 0, len(entries))
	for i, e := range entries {
		operation, ok := readOperation(e)
		if !ok {
			return nil, refuse(CodeForm, i)
		}
		operations = append(operations, operation)
	}
	return operations, nil
}

func readOperation(e entry) (Operation, bool) {
	object, _ := e.value.(map[string]any)
	form := &form{members: object, sound: object != nil}
	operation := Operation{Kind: e.kind}
	switch e.kind {
	case OpGlob:
		operation.Include = form.texts(memberInclude)
		if form.has(memberExclude) {
			operation.Exclude = form.texts(memberExclude)
		}
		form.sound = form.sound && len(operation.Include) > 0
	case OpWrite:
		operation.Path, operation.Content = form.text(memberPath), form.text(memberContent)
		operation.Executable = form.flag(memberExecutable)
	default:
		operation.Path = form.text(memberPath)
	}
	return operation, form.sound && form.read == len(object)
}

// A form reads members of an object and notes whether all were as they must be.
type form struct {
	members map[string]any
	read    int
	sound   bool
}

func (f *form) has(name string) bool {
	_, has := f.members[name]
	return has
}

func (f *form) text(name string) string {
	text, isText := f.members[name].(string)
	f.note(isText)
	return text
}

// flag is nil where the member is missing.
func (f *form) flag(name string) *bool {
	if !f.has(name) {
		return nil
	}
	flag, isFlag := f.members[name].(bool)
	f.note(isFlag)
	return &flag
}

func (f *form) texts(name string) []string {
	list, isList := f.members[name].([]any)
	f.note(isList)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, isText := item.(string)
		f.sound = f.sound && isText
		texts = append(texts, text)
	}
	return texts
}

// note counts a member that was read.
func (f *form) note(isSound bool) {
	f.read++
	f.sound = f.sound && isSound
}
