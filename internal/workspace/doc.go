// Package workspace holds the repositories and worktrees of a run as Git objects, and talks to Git remotes.
//
// A worktree is a commit and two trees: what is staged and what is in its files. An action on it makes new objects and
// new ids and changes nothing that was there, so a state is replaced as a whole or not at all. There is no checkout and
// no git program: nothing of a repository reaches a file system by its own name, and nothing of it is executed.
//
// Objects come from two places. The base is what was fetched of a commit, which is kept on disk, may be thrown away at
// any time and is fetched again. The run's own objects come in packs, which whoever keeps the run retains. Every object
// is checked against its id whenever it is read.
//
// A remote is observed by a complete listing or not at all, and changed by an update that names the commit it starts from,
// so that the server refuses what happened in between. What the package knows of its network is what it is given: a round
// tripper or a dialer, and credentials. It has no opinion on hosts, and none on clocks, Kubernetes or workflows.
package workspace
