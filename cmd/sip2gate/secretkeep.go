package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"sip2gate/cmd/sip2gate/internal/control"
	"sip2gate/dedup"
	"sip2gate/dedup/bolt"
	"sip2gate/dedup/secret"
)

// secretKeeper sees to the files of the secrets of a running gate.
type secretKeeper struct {
	file string
	disk *bolt.Store // nil while records are kept in memory only
	log  *slog.Logger

	rotating sync.Mutex
	// unsealed is the secret under which the store is still to be sealed, nil
	// if it is. Until then the one before cannot be given up.
	unsealed atomic.Pointer[[]byte]
}

// mostFormer bounds how many secrets are in use at once: each costs every
// checkout a little.
const mostFormer = 3

// rotate replaces the secret. What was claimed under the one before is found
// under it as long as it stands.
func (k *secretKeeper) rotate(ctx context.Context, g *dedup.Gate) error {
	k.rotating.Lock()
	defer k.rotating.Unlock()
	switch {
	case k.disk == nil || !k.disk.Health().Durable:
		return &control.Error{
			Text: "the secret was not replaced: the store cannot be written now",
			Hint: "see what is wrong with the disk first: sip2gate store stats",
		}
	case g.FormerSecrets() >= mostFormer:
		return &control.Error{
			Text: fmt.Sprintf("the secret was not replaced: %d secrets before it are still needed", g.FormerSecrets()),
			Hint: "each goes when the last loan remembered under it has gone; books to check keep it: sip2gate store list",
		}
	}
	fresh, err := secret.Rotate(k.file)
	if err != nil {
		return fmt.Errorf("replace the secret: %w", err)
	}
	k.unsealed.Store(&fresh)
	// The new one is on the disk from here on, so it is taken into use.
	if err := g.Rotate(fresh); err != nil {
		return err
	}
	k.log.Info("secret_rotated", "former", g.FormerSecrets())
	if err := k.seal(ctx); err != nil {
		k.log.Warn("store_not_sealed_anew", "error", err.Error(), "hint", "it is tried again; until then the secret before is kept")
	}
	return nil
}

// seal seals the store under the newest secret, if that is still to be done.
func (k *secretKeeper) seal(ctx context.Context) error {
	due := k.unsealed.Load()
	if due == nil {
		return nil
	}
	if err := k.disk.Rekey(ctx, *due); err != nil {
		return err
	}
	k.unsealed.CompareAndSwap(due, nil)
	return nil
}

// retire erases a secret that no record needs any more (dedup.Options).
func (k *secretKeeper) retire(ctx context.Context, old []byte) error {
	if err := k.seal(ctx); err != nil {
		return err
	}
	if !k.disk.Health().Durable {
		return errors.New("the store cannot be written now")
	}
	if err := secret.Erase(k.file, old); err != nil {
		return err
	}
	k.log.Info("secret_erased")
	return nil
}

// allSecrets are the current one and those before it, as the files have them.
func allSecrets(file string) ([][]byte, error) {
	now, _, err := secret.Load(file, true)
	if err != nil {
		return nil, err
	}
	former, err := secret.Former(file)
	if err != nil {
		return nil, err
	}
	return append([][]byte{now}, former...), nil
}
