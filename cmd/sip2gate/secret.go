package main

import (
	"context"
	"errors"
	"fmt"

	"sip2gate/cmd/sip2gate/internal/control"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/secret"
)

var secretCommands = []command{
	{"secret rotate", "", "replace the secret; what is remembered under the one before is still found, and that one is erased when nothing needs it any more", runRotate},
}

// runSecret is the word before secret rotate.
func runSecret(ctx context.Context, t *terminal, args []string) int {
	return t.branch(ctx, secretCommands, args)
}

func runRotate(ctx context.Context, t *terminal, args []string) int {
	s := newStaffCommand(t)
	if _, code, ok := s.parse(args, 0, 0); !ok {
		return code
	}
	var done rotated
	code := s.ask(ctx, control.Request{Command: askRotate}, &done, func() error {
		if err := s.hasStore(); err != nil {
			return err
		}
		held, err := bolt.Hold(ctx, storePath(s.config))
		if err != nil {
			return err
		}
		defer held.Close()
		former, err := secret.Former(s.config.Gate.SecretFile)
		if err != nil {
			return err
		}
		if len(former) >= mostFormer {
			return errors.New("the secret was not replaced: too many before it are still needed")
		}
		_, err = secret.Rotate(s.config.Gate.SecretFile)
		done.Former = len(former) + 1 // taken over at the gate's next start
		return err
	})
	if code == exitOK && !s.json {
		fmt.Fprintln(t.out, "The secret has been replaced. The one before is kept until no loan remembered under it is left, and is then erased.")
	}
	return code
}
