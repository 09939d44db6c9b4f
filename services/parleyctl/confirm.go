package parleyctl

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// addYesFlag adds the flag --yes of destructive commands.
func addYesFlag(c *cobra.Command, yes *bool) {
	c.Flags().BoolVarP(yes, "yes", "y", false, "do not ask")
}

// confirm returns nil if the operator has confirmed.
func (a *app) confirm(yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	question := clean(fmt.Sprintf(format, args...))
	if !a.Interactive {
		return usage(question + " Add --yes to do it without being asked")
	}
	_, _ = fmt.Fprint(a.Err, question+" [y/N] ")
	answer, _ := bufio.NewReader(a.In).ReadString('\n') // no answer is a no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
