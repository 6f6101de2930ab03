package main

import (
	"context"
	"fmt"

	"sip2gate/cmd/sip2gate/internal/config"
)

// runCheck reports every problem of a settings file, or what it makes the gate
// do.
func runCheck(_ context.Context, t *terminal, args []string) int {
	flags := t.flags()
	asJSON := flags.Bool("json", false, "print the report as one JSON object")
	files, code, ok := t.parse(flags, args, 1, 1)
	if !ok {
		return code
	}
	c, problems := config.ReadFile(files[0])
	failed := config.Failed(problems)
	summary := ""
	if !failed {
		summary = c.Summary()
	}
	if *asJSON {
		t.json(struct {
			OK       bool             `json:"ok"`
			Summary  string           `json:"summary,omitempty"`
			Problems []config.Problem `json:"problems"`
		}{!failed, summary, append([]config.Problem{}, problems...)})
	} else {
		for _, p := range problems {
			fmt.Fprintln(t.out, p)
		}
		if !failed {
			fmt.Fprintf(t.out, "%s: ok: %s%s\n", files[0], summary, warnings(len(problems)))
		}
	}
	if failed {
		return exitUnwell
	}
	return exitOK
}

func warnings(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 warning"
	default:
		return fmt.Sprintf(", %d warnings", n)
	}
}
