package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/apitomy/axiom-operator/runner/playbook"
	"github.com/apitomy/axiom-operator/runner/scripted"
)

func newScriptedCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "scripted --playbook FILE",
		Short: "Be an agent that plays a file",
		Long: `Speaks the Agent Client Protocol on standard input and output as an agent does,
with a file in the place of a model. A prompt plays the first turn that was not
played yet and whose expression matches the prompt; without one the agent
refuses. The file is checked before anything is said.

  turns:
  - when: Wait an hour            # regular expression; absent: any prompt
    steps:
    - call: {tool: get_composition, save: comp}
    - call:
        tool: propose_workflow_changes
        args: {changeSet: {id: cs-1, baseRevision: "${comp.workflowRevision}", ops: []}}
        expect: "^APPLIED"        # else the prompt ends in an error
        capture: {rev: 'New revision: (\S+)'}
    - say: Revision ${rev} is in place.
    stop: end_turn

Steps:
  call        {tool, server, args, save, expect, capture}
  say, think  a text
  permission  {tool, title, input, expect: allow|deny}
  sleep       a duration, such as 2s
  exit        an exit code
  hang        true: never go on, whatever is asked
  raw         a text to write as it is
  error       a message, or {code, message}: end the prompt in an error

Exit codes:
  0  the connection ended
  1  something went wrong
  2  the command line or the playbook is wrong
  n  an exit step said so`,
		Example: "  axiom-runner -- axiom-runner scripted --playbook /axiom-playbook/playbook.yaml",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return playScript(cmd, path) },
	}
	cmd.Flags().StringVar(&path, "playbook", "", "file to play")
	return cmd
}

func playScript(cmd *cobra.Command, path string) error {
	if path == "" {
		return usageError{errors.New("--playbook must be given")}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return usageError{fmt.Errorf("read playbook: %w", err)}
	}
	book, err := playbook.Parse(text)
	if err != nil {
		return usageError{fmt.Errorf("playbook %s: %w", path, err)}
	}
	return scripted.Serve(cmd.Context(), scripted.Config{
		Playbook: book, In: os.Stdin, Out: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr(),
		Env: os.Environ(), Home: os.Getenv("HOME"), Exit: os.Exit,
	})
}
