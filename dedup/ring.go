package dedup

import (
	"context"
	"fmt"
)

// secretKeys is one secret and what is made from it.
type secretKeys struct {
	secret []byte
	name   uint32
	keys   *Keyer
	seal   *Sealer
	idle   bool // the last sweep found no record under it, or under an older one
}

// ring is the secrets in use, the newest first. New claims are made under the
// first; what was claimed under the others is found, settled and ended as
// ever. A ring is never changed: it is replaced.
//
// Whoever judges an object reads the ring while he holds its item. So of two
// decisions on one object the later one knows every secret under which the
// earlier one can have claimed.
type ring []secretKeys

func newSecretKeys(secret []byte, match bool) (secretKeys, error) {
	seal, err := NewSealer(secret, "payload")
	if err != nil {
		return secretKeys{}, err
	}
	k := NewKeyer(secret, match)
	return secretKeys{secret: k.secret, name: k.Name(), keys: k, seal: seal}, nil
}

func newRing(match bool, secrets ...[]byte) (*ring, error) {
	var r ring
	for _, secret := range secrets {
		s, err := newSecretKeys(secret, match)
		if err != nil {
			return nil, err
		}
		r = append(r, s)
	}
	return &r, nil
}

func (r *ring) newest() *secretKeys { return &(*r)[0] }

// open tries each secret: a sealed value opens under its own alone.
func (r *ring) open(label, sealed []byte) ([]byte, error) {
	for i := range *r {
		if plain, err := (*r)[i].seal.Open(label, sealed); err == nil {
			return plain, nil
		}
	}
	return nil, ErrSeal
}

// Rotate makes secret the one under which new claims are made. Those before it
// are kept until no record under them is left. The secret must be on the disk
// already: what is claimed from now on is found by it alone.
func (g *Gate) Rotate(secret []byte) error {
	s, err := newSecretKeys(secret, g.opt.Match)
	if err != nil {
		return fmt.Errorf("take the new secret into use: %w", err)
	}
	g.rotate.Lock()
	defer g.rotate.Unlock()
	old := *g.ring.Load()
	for i := range old {
		if old[i].name == s.name {
			return fmt.Errorf("take the new secret into use: it is in use already")
		}
	}
	next := append(ring{s}, old...)
	g.ring.Store(&next)
	return nil
}

// FormerSecrets is how many secrets before the current one are still needed.
func (g *Gate) FormerSecrets() int { return len(*g.ring.Load()) - 1 }

// retire gives up the secrets under which no record is left. What was sealed
// under one may belong to a record under an older one, so they go from the
// oldest on; and each only if the sweep before found it idle too, since a
// claim under it may have been on its way when it was replaced.
func (g *Gate) retire(ctx context.Context) error {
	g.rotate.Lock()
	defer g.rotate.Unlock()
	now := *g.ring.Load()
	if len(now) == 1 {
		return nil
	}
	used := make(map[uint32]bool)
	for r := range g.store.All() {
		used[r.Under] = true
	}
	next := append(ring(nil), now...)
	last := true // all older ones are idle
	for i := len(next) - 1; i > 0 && last; i-- {
		last = !used[next[i].name] && !used[0]
		switch {
		case !last:
			next[i].idle = false
		case !next[i].idle || i < len(next)-1:
			next[i].idle = true
		default:
			if g.opt.Retired != nil {
				if err := g.opt.Retired(ctx, next[i].secret); err != nil {
					g.ring.Store(&next)
					return fmt.Errorf("give up a secret that no record needs any more: %w", err)
				}
			}
			next = next[:i]
		}
	}
	g.ring.Store(&next)
	return nil
}
