package live

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	clocktesting "k8s.io/utils/clock/testing"
)

// A command that takes one name completes it, and no naming is of a command that is
// not there.
func TestEveryNameIsCompleted(t *testing.T) {
	a, _, _ := atNoon(nil)
	var named []string
	var look func(*cobra.Command)
	look = func(cmd *cobra.Command) {
		if err := cmd.ValidateArgs([]string{"a"}); err == nil && cmd.Runnable() && len(cmd.Commands()) == 0 {
			named = append(named, cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	for _, group := range Commands(Options{Clock: clocktesting.NewFakeClock(noon)})(a.App) {
		look(group)
	}
	named = slices.DeleteFunc(named, func(path string) bool { return path == "run create" }) // names what is not yet there
	slices.Sort(named)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(namings())), named); diff != "" {
		t.Errorf("mismatch (-completed +named):\n%s", diff)
	}
}
