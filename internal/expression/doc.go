// Package expression compiles and evaluates the CEL expressions of workflow documents: conditions, inputs, titles,
// correlation keys, event matches and output mappings.
//
// A [Scope] says where an expression stands and therefore which variables it sees. A [Cache] holds one environment per
// scope and compiles each text once. [Program.Eval] turns JSON trees into CEL values, evaluates lazily and turns the
// result back into a JSON tree; [Program.Selects] is the verdict of a condition, which an evaluation error never
// decides.
//
// Every evaluation is bounded in three ways. Its cost is counted by the rules of the CEL library and ends at
// 1,000,000. Its context is looked at every 100 iterations. And because the library charges for a call only when the
// call has returned, a size guard stands in front of each function whose work or result can outgrow its arguments: it
// works out the size from the arguments and refuses before anything is built.
//
// Compiling is bounded as well: by the length of a text, the depth of its types, and the effort of checking them, which is
// known once the text is parsed. A whole document has a limit of its own, which whoever validates it keeps with
// [Cache.CheckEffort].
//
// Texts come from users and from agents, so the limits are part of the contract. The package knows nothing of
// documents, of runs or of Kubernetes.
package expression
