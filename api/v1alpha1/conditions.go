package v1alpha1

// Condition types. Every kind reports Ready, the summary that health tools
// read; the others are named where they are used.
const (
	// ConditionReady sums up: True when the object is what its spec asks for
	// (a run: when it completed).
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator still works on the object.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when the object cannot get further by itself.
	ConditionStalled = "Stalled"

	// ConditionValid of a composition is True when no item has an error.
	ConditionValid = "Valid"
	// ConditionAgentReady of a composition is True while its session can take a prompt.
	ConditionAgentReady = "AgentReady"
	// ConditionTurnPending of a composition is True while a turn waits for a person.
	ConditionTurnPending = "TurnPending"
	// ConditionReconciled of a composition is True when status and history
	// describe the observed generation, valid or not.
	ConditionReconciled = "Reconciled"

	// ConditionTriggersReady of a composition is False when a trigger of its
	// present generation could not start a run.
	ConditionTriggersReady = "TriggersReady"

	// ConditionStarted of a turn is True once its prompt was queued.
	ConditionStarted = "Started"
	// ConditionAgentDone of a turn is True once the agent's part is over, well or badly.
	ConditionAgentDone = "AgentDone"
	// ConditionResolved of a turn is True once nothing of it waits for a person.
	ConditionResolved = "Resolved"
	// ConditionUndone of a turn is True once its changes were taken back.
	ConditionUndone = "Undone"

	// ConditionPodReady of a session is True while its pod's agent is initialised.
	ConditionPodReady = "PodReady"
	// ConditionWithinLimit of a session is False while it waits for a free slot.
	ConditionWithinLimit = "WithinLimit"

	// ConditionAccepted of a run is True once its definition is pinned and valid
	// and its inputs are complete.
	ConditionAccepted = "Accepted"
	// ConditionWaiting of a run is True while all it has open waits for
	// something outside: people, events, timers or a resume request.
	ConditionWaiting = "Waiting"

	// ConditionDefinitionSource of a supervised run tells where its definition was
	// read before the last execution: reason Remote or Retained.
	ConditionDefinitionSource = "DefinitionSource"
	// ConditionCancelling of a supervised run is True while it winds down: no new
	// step begins.
	ConditionCancelling = "Cancelling"
	// ConditionSessionRefused of a session, and of its run, is True when an agent's
	// conversation could not be taken up again.
	ConditionSessionRefused = "SessionRefused"
	// ConditionSessionRecapped of a session is True when a new conversation began
	// with a recap of the one before.
	ConditionSessionRecapped = "SessionRecapped"
	// ConditionAnswerRefused of a supervised run is True when a stored answer does
	// not fit its question.
	ConditionAnswerRefused = "AnswerRefused"
)

// Reasons of composition conditions.
const (
	// ReasonValid: every item is free of errors.
	ReasonValid = "Valid"
	// ReasonProblems: at least one item has an error.
	ReasonProblems = "Problems"
	// ReasonNoWorkflow: the draft has no workflow yet.
	ReasonNoWorkflow = "NoWorkflow"
	// ReasonNoSession: no agent session exists for the composition.
	ReasonNoSession = "NoSession"
	// ReasonStarting: the agent's pod is on its way.
	ReasonStarting = "Starting"
	// ReasonSessionLimit: the session waits for a slot of its namespace.
	ReasonSessionLimit = "SessionLimit"
	// ReasonSuspended: the session's pod was removed while idle, or a run waits for a resume.
	ReasonSuspended = "Suspended"
	// ReasonAwaitingResolution: a finished turn waits for a person's decision.
	ReasonAwaitingResolution = "AwaitingResolution"
	// ReasonNone: no turn waits.
	ReasonNone = "None"
	// ReasonReconciled: status describes the observed generation.
	ReasonReconciled = "Reconciled"
	// ReasonProgressing: the operator is not done yet.
	ReasonProgressing = "Progressing"
	// ReasonError: the last attempt met an error; it is tried again.
	ReasonError = "Error"
	// ReasonTriggerFailed: an event could not start a run.
	ReasonTriggerFailed = "TriggerFailed"
	// ReasonNotAdmitted: admission did not note since when a trigger is active,
	// so it looks at no event.
	ReasonNotAdmitted = "NotAdmitted"
	// ReasonListening: all triggers look at events, but those that are suspended.
	ReasonListening = "Listening"
	// ReasonObserved: all triggers have seen the event.
	ReasonObserved = "Observed"
)

// Reasons of run, task and session conditions. A phase is also used as a
// reason where the condition only repeats it.
const (
	// ReasonPinned: the definition is pinned and valid.
	ReasonPinned = "Pinned"
	// ReasonDefinitionUnavailable: the repository of a definition cannot be reached.
	ReasonDefinitionUnavailable = "DefinitionUnavailable"
	// ReasonDefinitionChanged: what is retained of a definition is not what was pinned.
	ReasonDefinitionChanged = "DefinitionChanged"
	// ReasonHistoryDisagrees: the history tells of a component that the bundle does not have.
	ReasonHistoryDisagrees = "HistoryDisagrees"
	// ReasonRemote: the remote repository has what is retained.
	ReasonRemote = "Remote"
	// ReasonRetained: the remote repository was not reached, and what is retained serves.
	ReasonRetained = "Retained"
	// ReasonPodsTerminating: pods of the run are on their way out.
	ReasonPodsTerminating = "PodsTerminating"
	// ReasonWorkspaceDamaged: the run's Git objects cannot be put together again.
	ReasonWorkspaceDamaged = "WorkspaceDamaged"
	// ReasonDefinitionNotFound: the composition, or its workflow, does not exist.
	ReasonDefinitionNotFound = "DefinitionNotFound"
	// ReasonRevisionMismatch: the revision asked for is not the live one and not in history.
	ReasonRevisionMismatch = "RevisionMismatch"
	// ReasonInvalidDefinition: the workflow has errors.
	ReasonInvalidDefinition = "InvalidDefinition"
	// ReasonInvalidInputs: a required input is absent or null.
	ReasonInvalidInputs = "InvalidInputs"
	// ReasonHumanTask: a person must answer.
	ReasonHumanTask = "HumanTask"
	// ReasonEvent: an event must arrive.
	ReasonEvent = "Event"
	// ReasonTimer: a moment must come.
	ReasonTimer = "Timer"
	// ReasonResume: a person must ask for the resume.
	ReasonResume = "Resume"
	// ReasonMultiple: several sorts of things are waited for.
	ReasonMultiple = "Multiple"
	// ReasonStatusLost: the run has children but no instance; it never starts over.
	ReasonStatusLost = "StatusLost"
	// ReasonValueLost: a value that the run keeps outside of its status is gone or damaged.
	ReasonValueLost = "ValueLost"
	// ReasonNotStalled: nothing keeps the object from going on.
	ReasonNotStalled = "NotStalled"
	// ReasonSuperseded: a newer turn of the composition took this one's place.
	ReasonSuperseded = "Superseded"
	// ReasonVerified: the live content is the turn's result.
	ReasonVerified = "Verified"
	// ReasonDeclared: a client said that it applied the turn.
	ReasonDeclared = "Declared"
	// ReasonDetected: the live content became the turn's result by whatever hand.
	ReasonDetected = "Detected"
	// ReasonSkipped: everything that the turn wrote was edited since, so that
	// nothing of it was undone.
	ReasonSkipped = "Skipped"
	// ReasonNothingToUndo: the turn left nothing in the draft.
	ReasonNothingToUndo = "NothingToUndo"
	// ReasonUndoRefused: the API server does not take the earlier content any more.
	ReasonUndoRefused = "UndoRefused"
	// ReasonBaseChanged: the live workflow is no longer the turn's base.
	ReasonBaseChanged = "BaseChanged"
)

// Labels, annotations and finalizers.
const (
	// LabelComposition names the composition of a turn's, session's or snapshot's object.
	LabelComposition = "axiom.apitomy.io/composition"
	// LabelRun holds the UID of the run that a child belongs to.
	LabelRun = "axiom.apitomy.io/run"
	// LabelSession names the agent session that a pod, Secret or policy belongs to.
	LabelSession = "axiom.apitomy.io/session"
	// LabelComponent tells what a pod is for: ComponentAgent or ComponentAction.
	LabelComponent = "axiom.apitomy.io/component"
	// LabelCredential marks, with "true", the Secrets that pods may refer to.
	LabelCredential = "axiom.apitomy.io/credential"
	// LabelEventSource marks, with "true", the Secrets that let a sender of events
	// in; the Secret's name is the eventSourceId.
	LabelEventSource = "axiom.apitomy.io/event-source"
	// LabelContent marks, with "true", the immutable ConfigMaps that hold content by digest.
	LabelContent = "axiom.apitomy.io/content"

	// ComponentAgent is the LabelComponent of agent pods.
	ComponentAgent = "agent"
	// ComponentAction is the LabelComponent of pods of action attempts.
	ComponentAction = "action"

	// AnnotationBaseRevision on a composition update names the workflow revision
	// the edit was based on; admission keeps it at the revision that is stored.
	AnnotationBaseRevision = "axiom.apitomy.io/base-revision"
	// AnnotationTurn on a composition names the turn whose result the content is.
	AnnotationTurn = "axiom.apitomy.io/turn"
	// AnnotationWrite on a composition is the mark of the operator's own latest
	// write of content; nobody else can change it.
	AnnotationWrite = "axiom.apitomy.io/write"
	// AnnotationEditedBy on a composition is the user of the last content change.
	AnnotationEditedBy = "axiom.apitomy.io/edited-by"
	// AnnotationRequestedBy on a turn or a run is the user who created it.
	AnnotationRequestedBy = "axiom.apitomy.io/requested-by"
	// AnnotationResolvedBy on a turn is the user who resolved it.
	AnnotationResolvedBy = "axiom.apitomy.io/resolved-by"
	// AnnotationInterruptedBy on a turn is the user who interrupted it.
	AnnotationInterruptedBy = "axiom.apitomy.io/interrupted-by"
	// AnnotationUndoneBy on a turn is the user who asked for its undo.
	AnnotationUndoneBy = "axiom.apitomy.io/undone-by"
	// AnnotationResumedBy on a run names who asked for the last resume.
	AnnotationResumedBy = "axiom.apitomy.io/resumed-by"
	// AnnotationCancelledBy on a run is the user who asked for its cancellation.
	AnnotationCancelledBy = "axiom.apitomy.io/cancelled-by"
	// AnnotationAppliedBy on an action type or tool is the user who put a draft of
	// the Configuration Assistant there.
	AnnotationAppliedBy = "axiom.apitomy.io/applied-by"
	// AnnotationActivation on a child of a run is the activation it serves.
	AnnotationActivation = "axiom.apitomy.io/activation"
	// AnnotationTriggersSince on a composition is a JSON object that tells since
	// when each trigger is active; admission keeps it.
	AnnotationTriggersSince = "axiom.apitomy.io/triggers-since"
	// AnnotationTrigger on a run is the trigger that started it.
	AnnotationTrigger = "axiom.apitomy.io/trigger"
	// AnnotationEvent on a run is the event that it was started for.
	AnnotationEvent = "axiom.apitomy.io/event"
	// AnnotationAttempt on a child of a run is the attempt it serves, from 1.
	AnnotationAttempt = "axiom.apitomy.io/attempt"
	// AnnotationTokenHash on an attempt's pod is the digest of its token.
	AnnotationTokenHash = "axiom.apitomy.io/token-hash"

	// FinalizerCollect keeps a pod until its end was recorded in its run, so
	// that a missing pod was never created.
	FinalizerCollect = "axiom.apitomy.io/collect"
	// FinalizerSupervised keeps a supervised run until its pods are gone.
	FinalizerSupervised = "axiom.apitomy.io/supervised"
)

// Texts that the workbench fixes.
const (
	// TemplateWorkbench is the built-in template of composition sessions.
	TemplateWorkbench = "axiom-workbench"
	// AuthorWorkbench is the author of change sets made in turns.
	AuthorWorkbench = "agent:axiom-workbench"
)
