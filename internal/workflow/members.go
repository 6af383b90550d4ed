package workflow

// A Member is one member of a node's configuration, as a reference tells of it.
type Member struct {
	// Name in the configuration.
	Name string
	// Form is what its value looks like, in words and in the notation of documents.
	Form string
}

// Members of the configuration of nodes of the kind, the ones that matter most first. Others are kept and mean nothing.
// Components have none here: drafts do not use them.
func (k Kind) Members() []Member {
	timeout := Member{"timeout", "duration after which the `isTimeout` edge is taken"}
	outputs := "list of `{name, type, required, description, contextKey}`"
	switch k {
	case KindStart:
		return []Member{{"inputs", "list of `{name, type, required, description}`: what a run is started with"}}
	case KindAction:
		return []Member{
			{"actionType", "name of an action type; required"},
			{"inputs", "map of names to values; a text is an `action-input` expression"},
			{"outputs", outputs + ": which outputs of the action go into the context"},
			{"timeout", "duration after which an attempt fails"},
			{"retry", "`{maxAttempts, backoff: {initial, factor, max}}`"},
		}
	case KindHumanTask:
		return []Member{
			{"title", "`human-task-title` expression"},
			{"description", "text"},
			{"inputs", "map of names to what the person sees; a text is an `action-input` expression"},
			{"outputs", "list of `{name, type, required, label, description, widget, options, contextKey}`: the form"},
			{"responseSchema", "JSON Schema 2020-12 of the whole answer"},
			{"assignees", "`{users, groups}`"},
			timeout,
		}
	case KindReceiveEvent:
		return []Member{
			{"eventType", "exact type of the event; required"},
			{"match", "list of `receive-event-match` expressions, all of which must hold"},
			{"correlationKey", "`{subscriptionKey, eventKey}`: expressions of the scopes of these names"},
			{"outputs", "list of `{contextKey, expression}`, `receive-event-output` expressions"},
			{"lookback", "how far back events count: `" + LookbackRunStart + "` (default), `" + LookbackNone + "` or a duration"},
			timeout,
		}
	case KindWait:
		return []Member{{"duration", "duration; required"}}
	case KindEnd:
		return []Member{{"outcome", "text that becomes the outcome of the run"}}
	case KindComponent:
	}
	return nil
}

// FieldTypes are the types that inputs and outputs may have; a field without one is a string.
func FieldTypes() []string { return []string{typeString, typeNumber, typeBoolean, typeObject} }
