// Package event decides what an event from outside is, and whom it concerns.
//
// Senders speak different dialects. CloudEvents 1.0 (binary, structured and
// batched) and the webhooks of GitHub are read into an [Event], or refused with
// the member that is at fault; a delivery that names nothing of interest is
// neither. The name under which an event is stored is made from who sent it and
// what the sender calls it, so that a repeated delivery meets the first one.
//
// Two questions are asked of a stored event. Which waiting activations may it be
// for: the [Index] answers with one evaluation for each distinct expression,
// however many wait. And does it start something new: a [Rule] answers with the
// inputs of the run to start, and with what makes it the same run the next time.
//
// The package knows nothing of HTTP, of Kubernetes or of clocks: headers, bodies
// and moments are its arguments.
package event
