// Package telemetry gives each run one trace, whichever operator carries it and
// however often that is restarted.
//
// The ids of a trace and its spans are made from the run's UID and from
// activations, and their times from the run's history. So nothing has to be
// remembered: any operator that sees a span's activation closed sends the very
// same span, and one that is sent twice is stored once. The trace's id is known
// before anything is sent, and the run's status has it.
//
//	run                      ├──────────────────────────────┤ sent when it ends
//	  start#1                ├┤
//	  assess#1                ├─────────┤                      sent when it closes
//	  approve#1                         ├────────────────────┤
//
// Spans name places and codes, never values. The package knows nothing of
// Kubernetes; where spans go is said by the standard OTEL_* variables.
package telemetry
